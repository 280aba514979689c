package member

// CutOff reports whether the node with a name reaches no majority of the members, as the
// fence defines it; for implementations of [Detector]. The tie breaker may be "".
func CutOff(self string, members []Member, tieBreaker string) bool {
	reachable, known, tie := 0, 0, tieBreaker == self
	for i := range members {
		m := &members[i]
		if m.State == Left {
			continue
		}
		known++
		if m.Name == self || m.State <= ProbeFailed {
			reachable++
			tie = tie || m.Name == tieBreaker
		}
	}
	return cutOff(reachable, known, tie && tieBreaker != "", tieBreaker != "")
}

// cutOff is the rule. The argument tie says that the tie breaker can be reached. Without a
// tie breaker, hasTie is false.
func cutOff(reachable, known int, tie, hasTie bool) bool {
	if hasTie && 2*reachable == known {
		return !tie
	}
	return 2*reachable <= known
}

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
	tie := c.settings.tie == c.self.name
	if p := c.peers[c.settings.tie]; p != nil {
		tie = p.state <= ProbeFailed
	}
	c.cutOff = cutOff(reachable, known, tie, c.settings.tie != "")
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
