package member

import (
	"slices"
	"time"
)

// relay is a probe for another node.
type relay struct {
	requester *peer
	boot      uint64 // of the requester
	sequence  uint64 // of the requester's probe
	target    *peer
	again     time.Duration // when the ping is repeated, or forever
	deadline  time.Duration // when the requester gets a nack
}

// relaysMax limits the probes for other nodes: each costs about 100 bytes, and a node that
// needs more helpers than this has other problems.
const relaysMax = 1024

// relayFraction: the ping for another node is repeated after this part of its time.
const relayFraction = 3

// startRelay probes a target for another node.
func (c *Core) startRelay(from *peer, m *message) {
	target := c.peers[m.target]
	if target == nil || target == from {
		return
	}
	same := func(r relay) bool { return r.requester == from && r.sequence == m.sequence }
	if slices.ContainsFunc(c.relays, same) {
		return // a repetition, because the answer takes long
	}
	if len(c.relays) >= relaysMax {
		c.stats.RelaysFull++
		return
	}
	c.relays = append(c.relays, relay{
		requester: from, boot: m.boot, sequence: m.sequence, target: target,
		again: c.now + m.within/relayFraction, deadline: c.now + m.within,
	})
	c.ping(target, 0)
}

// checkRelays repeats pings, and answers requesters whose target did not answer.
func (c *Core) checkRelays() {
	c.relays = slices.DeleteFunc(c.relays, func(r relay) bool {
		if c.now >= r.deadline {
			c.send(r.requester, &message{kind: kindNack, sequence: r.sequence, echo: r.boot})
			return true
		}
		return false
	})
	for i := range c.relays {
		if r := &c.relays[i]; c.now >= r.again {
			r.again = forever
			c.ping(r.target, 0)
		}
	}
}

// endRelays answers the requesters that wait for a sign of life of a member.
func (c *Core) endRelays(target *peer) {
	c.relays = slices.DeleteFunc(c.relays, func(r relay) bool {
		if r.target == target {
			c.ack(r.requester, r.sequence, r.boot)
		}
		return r.target == target
	})
}
