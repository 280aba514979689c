package cluster

import (
	"encoding/binary"
	"fmt"
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
	lookAt    time.Duration // when mayLeave looks again
	quietAt   time.Duration // since when the node is idle, and has sent and received no messages
	refused   []bool        // by group
	refusedAt time.Duration // when refused has changed
}

// message is the control message about the drain.
func (d *drain) message() []byte {
	b := []byte{controlDraining}
	for group, refused := range d.refused {
		if refused {
			b = binary.AppendUvarint(b, uint64(group))
		}
	}
	return b
}

// drains handles the control message of a node that drains.
func (p *peer) drains(r *reader) error {
	refused := make([]bool, p.core.pool.Groups())
	for len(r.b) > 0 {
		group := r.index()
		if r.err != nil || group >= len(refused) {
			return fmt.Errorf("%w: a draining node refuses messages for group %d", errMalformed, group)
		}
		refused[group] = true
	}
	p.draining, p.heldBack = true, refused
	p.resume()
	return nil
}

// beginDrain is called when this node is stopped.
func (c *core) beginDrain() {
	c.draining, c.drainAt, c.drain.quietAt = true, c.now, c.now
	c.drain.refused = make([]bool, c.pool.Groups())
	if !c.client {
		c.sendAll(laneControl, c.drain.message())
	}
	for _, p := range c.ordered {
		p.resume() // another draining node accepts everything from this node
	}
}

// allDrain reports whether all nodes drain and none of them has left. Then they end
// together, when the groups have finished.
func (c *core) allDrain(now time.Duration) bool {
	return !slices.ContainsFunc(c.participants(), func(name string) bool { return !c.drains(name, now) })
}

// drains reports whether a node drains and has not left.
func (c *core) drains(name string, now time.Duration) bool {
	if name == c.node {
		return c.draining
	}
	p := c.peers[name]
	return p != nil && p.draining && !p.hasLeft(now)
}

// othersDrain reports whether another node drains and has not left.
func (c *core) othersDrain(now time.Duration) bool {
	return slices.ContainsFunc(c.participants(), func(name string) bool { return name != c.node && c.drains(name, now) })
}

// expire drops messages that have waited too long for a node.
func (c *core) expire(now time.Duration) {
	if now < c.expireAt {
		return
	}
	c.expireAt = now + expireEvery
	c.forgetClients(now)
	for _, p := range c.ordered {
		timeout := p.patience()
		p.changed = true // its dueAt depends on expireAt
		p.listen(now)
		p.waitedFor = false
		if p.takes() && p.heldBack == nil || now-p.lostAt < timeout && !p.draining {
			continue
		}
		before := now - timeout
		if c.draining && (p.hasLeft(now) || now-c.drainAt >= timeout) && now-p.lostAt >= timeout {
			p.waitedFor, before = true, now // otherwise this node would wait again for each message that it still sends
		}
		why := p.unreachable()
		for _, pair := range p.out {
			if p.takes() && (pair.handed > 0 || p.accepts(pair.To)) {
				continue // the node handles what it has accepted
			}
			pair.expire(before, why)
		}
	}
	c.expireReturned(now)
}

// mayLeave ends a node that drains while others go on, after it has handled everything
// that it has accepted, and others have handled everything that it has sent. Only the core
// passes on what arrives, so nothing arrives between the last look and the end.
func (c *core) mayLeave(now time.Duration) {
	d := &c.drain
	if !c.draining || c.left || c.ended || c.client && !c.pool.IsClosed() || now < d.lookAt {
		return
	}
	d.lookAt = now + drainLook // not in each step, because IsIdle looks at all instances
	switch {
	case c.client: // it has no messages to expect
		d.lookAt = now + closeEvery
		c.giveUp()
		if c.pool.IsIdle() {
			c.leave()
		}
		return
	case c.allDrain(now):
		c.refuse(slices.Repeat([]bool{true}, len(d.refused))) // clients would keep the nodes busy
		return
	case !c.pool.IsIdle() || slices.ContainsFunc(c.ordered, (*peer).mayAnswer):
		d.quietAt = now
	}
	late, quiet, wait := now-c.drainAt >= c.leaveAfter, now-d.quietAt, min(quietAfter, c.leaveAfter)
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
		c.leave()
	}
}

// mayAnswer reports whether a node has not acknowledged what it was sent, perhaps that this node drains. On a
// busy host, its answer that it drains too takes much longer than quietAfter.
func (p *peer) mayAnswer() bool {
	return p.slot == nil && p.takes() && p.session.Stats().Pending > 0
}

// unneeded returns which groups this node does not need to drain.
func (c *core) unneeded() []bool {
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
func (c *core) refuse(groups []bool) {
	d := &c.drain
	if slices.Equal(groups, d.refused) {
		return
	}
	d.refused, d.refusedAt = groups, c.now
	c.sendAll(laneControl, d.message())
}

// awaitsClients reports whether this node drains, and messages of clients may still be on their way. They
// must not arrive after the end of their group.
func (c *core) awaitsClients() bool {
	d := &c.drain
	return c.draining && slices.ContainsFunc(c.ordered, func(p *peer) bool { return p.slot != nil && p.found && p.reachable }) &&
		(slices.Contains(d.refused, false) || c.now-max(d.refusedAt, d.quietAt) < settleAfter)
}

// leave ends this node while others go on.
func (c *core) leave() {
	c.left = true
	c.sendAll(laneControl, []byte{controlLeft})
	c.pool.Leave()
}
