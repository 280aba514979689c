package cluster

import (
	"slices"
	"time"
)

// A node that is stopped while others go on drains in steps:
//
//  1. Its sources and external processors stop. It still accepts and handles the messages of other
//     nodes and of clients. If all nodes are stopped, they refuse those of clients, and end together
//     when the groups have finished.
//  2. If nothing has happened for quietAfter, or leaveAfter has passed, it refuses messages for
//     the groups that it does not need, and the other nodes hold these messages back. It needs a
//     group while a message that it waits for is upstream of the group: another node may be unable to
//     handle that message before there is room in a queue to this node. So the groups are refused
//     one after the other, in the order of the edges.
//  3. When it refuses all groups, has handled everything that it has accepted, and others have
//     handled everything that it has sent, it leaves.
//
// The queues decide again at each look which groups are refused. If a message was still on its way
// to a refused group, the node accepts messages for the groups downstream again.

const (
	drainLook   = 20 * time.Millisecond  // how often a draining node looks at its queues: there may be many
	quietAfter  = 200 * time.Millisecond // without messages: when all nodes are stopped, the signals may be apart
	settleAfter = 20 * time.Millisecond  // after the last refusal: messages may still be on their way
)

// drain is the state of a node that drains.
type drain struct {
	refused   []bool        // by group
	refusedAt time.Duration // when refused has changed
}

// message is the control message about the drain.
func (d *drain) message() []byte {
	return appendGroups([]byte{controlDraining}, d.refused)
}

func (c *nodeCore) drainBegan() {
	c.together = true
	c.drain.refused = make([]bool, c.pool.Groups())
	c.sendAll(laneControl, c.drain.message())
}

// allDrain reports whether all nodes drain and none of them has left. Then they end
// together, when the groups have finished.
func (c *nodeCore) allDrain(now time.Duration) bool {
	return !slices.ContainsFunc(c.participants(), func(name string) bool { return !c.drains(name, now) })
}

// drains reports whether a node drains and has not left.
func (c *nodeCore) drains(name string, now time.Duration) bool {
	if name == c.node {
		return c.draining
	}
	p := c.peers[name]
	return p != nil && p.draining && !p.hasLeft(now)
}

// othersDrain reports whether another node drains and has not left.
func (c *nodeCore) othersDrain(now time.Duration) bool {
	return slices.ContainsFunc(c.participants(), func(name string) bool { return name != c.node && c.drains(name, now) })
}

// mayLeave ends a node that drains while others go on, after it has handled everything
// that it has accepted, and others have handled everything that it has sent. Only the core
// passes on what arrives, so nothing arrives between the last look and the end.
func (c *nodeCore) mayLeave(now time.Duration) {
	d := &c.drain
	if !c.draining || c.left || c.ended || now < c.lookAt {
		return
	}
	c.lookAt = now + drainLook // not in each step, because IsIdle looks at all instances
	switch {
	case c.allDrain(now):
		c.refuse(slices.Repeat([]bool{true}, len(d.refused))) // clients would keep the nodes busy
		return
	case !c.pool.IsIdle() || c.mayBeAnswered():
		c.quietAt = now
	}
	late, quiet, wait := now-c.drainAt >= c.leaveAfter, now-c.quietAt, min(quietAfter, c.leaveAfter)
	switch {
	case c.othersDrain(now): // perhaps all nodes are stopped
		wait = c.leaveAfter
	case late:
		wait = settleAfter
	}
	if !late && quiet < wait {
		c.refuse(make([]bool, len(d.refused)))
		return
	}
	c.pool.StopTimers()
	c.refuse(c.unneeded())
	if quiet >= wait && now-d.refusedAt >= settleAfter && !slices.Contains(d.refused, false) {
		c.leaveOthers()
	}
}

// mayBeAnswered reports whether a node has not acknowledged what it was sent, perhaps that this node drains. On a
// busy host, its answer that it drains too takes much longer than quietAfter.
func (c *nodeCore) mayBeAnswered() bool {
	for p := range c.nodes() {
		if p.takes() && p.session.Stats().Pending > 0 {
			return true
		}
	}
	return false
}

// unneeded returns which groups this node does not need to drain.
func (c *nodeCore) unneeded() []bool {
	arriving := make([]bool, c.pool.Groups())
	for _, p := range c.ordered {
		for _, in := range p.pairs {
			if in.waiting() > 0 { // perhaps in no queue yet
				arriving[c.pool.GroupOf(in.arrivals.To)] = true
			}
		}
	}
	groups := c.pool.Needed(arriving)
	for i, needed := range groups {
		groups[i] = !needed
	}
	return groups
}

// refuse tells the other nodes for which groups this node takes no more messages.
func (c *nodeCore) refuse(groups []bool) {
	d := &c.drain
	if slices.Equal(groups, d.refused) {
		return
	}
	d.refused, d.refusedAt = groups, c.now
	c.sendAll(laneControl, d.message())
}

// refuses reports whether this node drains and takes no more messages for a group.
func (c *nodeCore) refuses(group int) bool { return c.draining && c.drain.refused[group] }

// awaitsClients reports whether this node drains, and messages of clients may still be on their way. They
// must not arrive after the end of their group.
func (c *nodeCore) awaitsClients() bool {
	d := &c.drain
	return c.draining && c.clients.areConnected() &&
		(slices.Contains(d.refused, false) || c.now-max(d.refusedAt, c.quietAt) < settleAfter)
}
