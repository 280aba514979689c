package member

import "github.com/topogen/topogen/runtime/internal/bug"

// checkFence is step 4. A node is cut off if it reaches no majority of the known members:
// half of them or more are Suspected or Dead. This is the document's rule
// bad*2 > others, where others are all but the node itself. If exactly half can be
// reached, the side of the tie breaker is not cut off.
//
// ProbeFailed members count as reachable, so that one lost probe in a small cluster does
// not stop its work. They are Suspected or Alive soon.
func (c *Core) checkFence() {
	reachable := 1 + c.count[Alive] + c.count[ProbeFailed]
	known := reachable + c.count[Suspected] + c.count[Dead]
	c.cutOff = 2*reachable <= known
	if bug.On(bug.HalfIsMajority) {
		c.cutOff = 2*reachable < known
	}
	if 2*reachable == known && c.settings.tie != "" {
		tie := c.peers[c.settings.tie]
		c.cutOff = c.settings.tie != c.self.name && (tie == nil || tie.state > ProbeFailed)
	}
	fenced := c.cutOff && c.settings.fence || c.replaced
	if fenced == c.fenced {
		return
	}
	c.fenced = fenced
	if fenced {
		c.event(EventFenced, c.self)
	} else {
		c.event(EventUnfenced, c.self)
	}
}
