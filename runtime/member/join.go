package member

import (
	"fmt"
	"time"
)

// joinWaitMax intervals pass at most between two attempts to join: a node that starts long
// before the others notices them soon.
const joinWaitMax = 4

// join asks a random first member for all claims, until one answers. The answer contains
// all members, and this node announces itself to each. So a join costs one request, the
// parts of one answer, and one message for each member.
func (c *Core) join() {
	if c.joined || c.now < c.joinAt {
		return
	}
	c.joinAt = c.now + c.joinWait
	c.joinWait = min(2*c.joinWait, joinWaitMax*c.settings.Interval)
	to := c.peers[c.seeds[c.rng.IntN(len(c.seeds))]]
	if to == nil || to.state == Left {
		// This first member has left. Any other member that was heard will do.
		other := c.pick(1, func(p *peer) bool { return p.state == Alive })
		if len(other) == 0 {
			return
		}
		to = other[0]
	}
	c.requestSync(to)
}

func (c *Core) requestSync(to *peer) {
	c.stats.Syncs++
	c.send(to, &message{kind: kindSync, want: true, records: []record{c.self.record}})
}

// isJoinAnswer reports whether a message is a part of the answer to a request to join. This
// node announces itself to the members that it learns from it.
func (c *Core) isJoinAnswer(from string, m *message) bool {
	return m.kind == kindSync && !m.want && (!c.joined || from == c.answeredBy && !c.settled)
}

// mismatchesMin is the number of answers in a row with another digest after which a node
// asks for all claims: while news spreads, digests differ for a few answers.
const mismatchesMin = 3

// syncWaitMax intervals pass at most between two requests for all claims, which are large.
const syncWaitMax = 32

// compareDigest compares all claims of this node with those of another one. If they differ
// for long, for example after a partition, it asks for all claims, and more and more rarely
// if it learns nothing. A node that has just joined asks at the first difference: if many
// nodes start at the same time, the first answer contained only some of them. So does a
// node that was declared dead.
func (c *Core) compareDigest(p *peer, m *message) {
	if m.digest == c.digest {
		c.mismatches, c.settled = 0, true
		return
	}
	c.mismatches++
	if c.now < c.syncAt {
		return
	}
	if c.settled && (c.mismatches < mismatchesMin || len(c.rumors[0]) > 0 || p.state != Alive) {
		return
	}
	c.mismatches = 0
	c.syncAt = c.now + c.syncWait
	if !c.settled {
		c.syncAt = c.now + c.settings.Interval/2
	}
	c.syncWait = min(2*c.syncWait, syncWaitMax*c.settings.Interval)
	c.requestSync(p)
	c.sendAll(p)
}

// handleSync answers a request for all claims, or notes that one was answered.
func (c *Core) handleSync(p *peer, m *message, news bool) {
	if m.want {
		if p.syncedAt == 0 || c.now-p.syncedAt >= c.settings.Interval/2 {
			p.syncedAt = max(c.now, 1)
			c.sendAll(p)
		}
		return
	}
	if news {
		c.syncWait = 2 * c.settings.Interval
	}
	if !c.joined {
		c.joined, c.answeredBy = true, p.name
	}
}

// sendAll sends all claims in parts.
func (c *Core) sendAll(to *peer) {
	m := &message{kind: kindSync, records: []record{c.self.record}}
	size := headSize + recordSize(&c.self.record)
	for _, p := range c.ring {
		if p == to || p.boot == 0 {
			continue
		}
		need := recordSize(&p.record)
		if size+need > syncBytes {
			c.send(to, m)
			m.records, size = nil, headSize
		}
		m.records = append(m.records, c.claim(p))
		size += need
	}
	c.send(to, m)
}

// Leave tells all members that this node ends on purpose. The node then does nothing more,
// except that Left reports when enough members have confirmed.
func (c *Core) Leave(now time.Duration) {
	c.advance(now)
	if c.stopped() {
		return
	}
	c.digest ^= c.self.digest()
	c.self.status, c.self.state, c.self.changed, c.self.ended = statusLeft, Left, c.now, c.now
	c.sequence++
	for _, p := range c.ring {
		if p.state < Dead {
			c.farewells++
			c.send(p, &message{kind: kindLeave, sequence: c.sequence, records: []record{c.self.record}})
		}
	}
	c.farewells -= c.farewells / 2 // so many are still missing
	c.leaving = true
	for len(c.probes) > 0 {
		c.endProbe(c.probes[0])
	}
	c.relays = nil
	c.due = c.next()
}

// Left reports whether at least half of the members have confirmed that this node leaves.
// They inform the others. A process that was replaced has nothing to say.
func (c *Core) Left() bool { return c.replaced || c.leaving && c.farewells == 0 }

// Remove notes that a dead member will not come back, and tells all others. It counts as
// Left: the fence does not count it as a known member any more.
func (c *Core) Remove(now time.Duration, name string) error {
	c.advance(now)
	p := c.peers[name]
	if p == nil {
		return fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	if p.state != Dead {
		return fmt.Errorf("%w: %s is %v", ErrAlive, name, p.state)
	}
	r := c.claim(p)
	r.status, r.age = statusLeft, 0
	if p.boot == 0 {
		c.setState(p, Left)
		p.ended = c.now
	} else {
		c.replace(p, &r)
	}
	c.checkFence()
	c.due = c.next()
	return nil
}
