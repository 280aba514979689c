package member

import (
	"slices"
	"time"
)

// probe is a direct probe, and after its timeout the indirect probes of the same target.
type probe struct {
	target   *peer
	sequence uint64
	timeout  time.Duration // of the indirect probes
	repeats  int           // how often the ping, or the request to helpers, is sent again
	again    time.Duration // when it is sent again, or forever
	deadline time.Duration // when it has failed

	helpers []helper // of the indirect probes; nil: the direct probe is pending
}

type helper struct {
	peer   *peer
	nacked bool
}

const (
	// directRepeats are the repetitions of a ping, after each repeatFraction of the direct
	// timeout. Three pings leave 5 % failures where 20 % of the messages are lost, and
	// cost nothing while answers come in time.
	directRepeats  = 2
	repeatFraction = 4

	// helperFraction: a helper answers after 3/5 of the requester's timeout, so that its
	// negative answer arrives in time (a flaw of the document, where both wait 3 s).
	helperNumerator, helperDenominator = 3, 5
)

// checkDirectProbes is step 1: a direct probe that got no answer in time is followed by
// indirect probes. Answers are handled when they arrive.
func (c *Core) checkDirectProbes() {
	for _, p := range slices.Clone(c.probes) {
		switch {
		case p.helpers != nil:
		case c.now >= p.deadline:
			c.probeIndirectly(p)
		case c.now >= p.again:
			c.ping(p.target, p.sequence)
			c.repeat(p, c.scaled(c.settings.DirectTimeout)/repeatFraction)
		}
	}
}

func (c *Core) repeat(p *probe, after time.Duration) {
	p.repeats--
	p.again = c.now + after
	if p.repeats <= 0 {
		p.again = forever
	}
}

// probeIndirectly asks helpers. Without helpers the target is suspected at once (a flaw of
// the document, where it stays probe-failed).
func (c *Core) probeIndirectly(p *probe) {
	if p.target.state == Alive { // not if another node suspects it already
		c.setState(p.target, ProbeFailed)
	}
	for _, h := range c.pick(c.settings.Helpers, func(h *peer) bool { return h.state == Alive && h != p.target }) {
		p.helpers = append(p.helpers, helper{peer: h})
	}
	if len(p.helpers) == 0 {
		c.worsen(1)
		c.fail(p)
		return
	}
	p.deadline = c.now + p.timeout
	p.repeats, p.again = 1, c.now+p.timeout/repeatFraction
	c.requestProbes(p)
}

// requestProbes asks the helpers that have not answered.
func (c *Core) requestProbes(p *probe) {
	within := (p.deadline - c.now) * helperNumerator / helperDenominator
	for i := range p.helpers {
		if h := &p.helpers[i]; !h.nacked {
			c.send(h.peer, &message{
				kind: kindPingRequest, sequence: p.sequence, target: p.target.name,
				within: max(within.Truncate(time.Millisecond), time.Millisecond),
			})
		}
	}
}

// checkIndirectProbes is step 2: a target that no helper reached is suspected.
func (c *Core) checkIndirectProbes() {
	for _, p := range slices.Clone(c.probes) {
		switch {
		case p.helpers == nil:
		case c.now >= p.deadline:
			silent := 0
			for _, h := range p.helpers {
				if !h.nacked {
					silent++
				}
			}
			c.fail(p)
			if silent == len(p.helpers) {
				c.sweep() // before the health is worse, so that it ends soon
			}
			c.worsen(silent)
		case c.now >= p.again:
			c.requestProbes(p)
			c.repeat(p, 0)
		}
	}
}

// fail ends a probe and suspects its target. Each helper that could not reach the target
// either confirms the suspicion from the start.
func (c *Core) fail(p *probe) {
	accusers := []uint32{accuser(c.self.name)}
	for _, h := range p.helpers {
		if h.nacked {
			accusers, _ = addAccusers(accusers, []uint32{accuser(h.peer.name)})
		}
	}
	c.endProbe(p)
	c.suspect(p.target, accusers)
}

func (c *Core) endProbe(p *probe) {
	p.target.probe = nil
	c.probes = slices.DeleteFunc(c.probes, func(q *probe) bool { return q == p })
}

// sendProbe is step 5: one probe per interval, round-robin over the alive members without
// a pending probe. Members in other states are skipped, as in the document; they have
// other ways back to Alive.
func (c *Core) sendProbe() {
	if c.now < c.probeAt {
		return
	}
	c.probeAt = c.now + c.scaled(c.settings.Interval)
	for range c.ring {
		p := c.ring[c.position%len(c.ring)]
		c.position = (c.position + 1) % len(c.ring)
		if p.state == Alive && p.probe == nil {
			c.startProbe(p)
			return
		}
	}
}

func (c *Core) startProbe(target *peer) {
	c.sequence++
	timeout := c.scaled(c.settings.DirectTimeout)
	p := &probe{
		target: target, sequence: c.sequence, timeout: c.scaled(c.settings.IndirectTimeout),
		repeats: directRepeats, again: c.now + timeout/repeatFraction, deadline: c.now + timeout,
	}
	target.probe = p
	c.probes = append(c.probes, p)
	c.ping(target, p.sequence)
}

// ping sends a ping. The sequence 0 is for pings without a probe.
func (c *Core) ping(p *peer, sequence uint64) {
	p.toldAt = c.now
	c.send(p, &message{
		kind: kindPing, sequence: sequence, records: []record{c.self.record},
		knownBoot: p.boot, knownIncarnation: p.incarnation, knownStatus: p.status,
	})
}

// sweepMax is the number of members that a sweep probes: enough to find a cut within two
// or three sweeps with 100 nodes, and a burst that a network carries.
const sweepMax = 64

// sweep probes up to sweepMax members at once, after a probe whose helpers were all silent:
// this node may be cut off from the others. Without sweeps, a node that is alone finds
// one unreachable member per interval, and is fenced long after the others have declared
// it dead.
func (c *Core) sweep() {
	if c.now < c.sweepAt {
		return
	}
	c.sweepAt = c.now + c.settings.DirectTimeout
	for _, p := range c.pick(sweepMax, func(p *peer) bool { return p.state == Alive && p.probe == nil }) {
		c.startProbe(p)
	}
}

// pick returns up to n random members with a property, in random order.
func (c *Core) pick(n int, with func(*peer) bool) (picked []*peer) {
	if n <= 0 || len(c.ring) == 0 {
		return nil
	}
	// Step through the ring from a random place with a random stride that has no common
	// divisor with its length: all members are visited once, and no list is copied.
	length := len(c.ring)
	stride := 1 + c.rng.IntN(length)
	for divisor(stride, length) != 1 {
		stride++
	}
	for i, at := 0, c.rng.IntN(length); i < length && len(picked) < n; i, at = i+1, (at+stride)%length {
		if p := c.ring[at]; with(p) {
			picked = append(picked, p)
		}
	}
	return picked
}

// divisor returns the greatest common divisor.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
