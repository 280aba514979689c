package member

import (
	"math"
	"slices"
	"time"
)

const (
	// gossipFraction: urgent news is sent five times per interval.
	gossipFraction = 5
	// gossipFanout is the number of members that get news each time. With three, news
	// reaches 100 nodes in about five rounds.
	gossipFanout = 3
	// retransmissions is lambda of SWIM: each node sends a claim lambda * log10(nodes + 1)
	// times, rounded up: 7 times with 100 nodes. A node misses it with a probability of
	// exp(-7), and with exp(-5.6) if 20 % of the messages are lost. Pings, acks and the
	// comparison of digests bring it to these nodes. A higher lambda costs as many more
	// messages for each suspicion.
	retransmissions = 3
	// announcesMax limits the announcements of a node that has joined, per round: 1,000
	// members get them within a second.
	announcesMax = 256
)

// spread begins to tell other nodes a claim. News about failures is urgent: it is also
// sent in messages of its own. Other news only travels in pings and acks, where it costs
// no messages.
func (c *Core) spread(p *peer, urgent bool) {
	c.endRumor(p)
	p.urgent = urgent
	times := retransmissions * math.Log10(float64(len(c.ring)+2))
	if p.status == statusSuspect {
		times /= 2 // not all nodes need to know: some confirm it, and its end is spread again
	}
	p.transmissions = int(math.Ceil(times))
	list := &c.rumors[rank(urgent)]
	*list = append(*list, p)
	if urgent && len(*list) == 1 {
		c.gossipAt = max(c.gossipAt, c.now)
	}
}

func rank(urgent bool) int {
	if urgent {
		return 0
	}
	return 1
}

func (c *Core) endRumor(p *peer) {
	if p.transmissions > 0 {
		list := &c.rumors[rank(p.urgent)]
		*list = slices.DeleteFunc(*list, func(q *peer) bool { return q == p })
		p.transmissions = 0
	}
}

// addNews adds claims to a message, as many as fit into a frame. A claim that was sent goes
// to the end of the list, so that all get their share.
func (c *Core) addNews(to *peer, m *message, size int) {
	for i := range c.rumors {
		list := c.rumors[i]
		for range len(list) {
			p := list[0]
			need := recordSize(&p.record)
			if size+need > frameBytes {
				break
			}
			list = list[1:]
			if p == to || p == c.self && m.kind == kindPing { // it knows, or the ping contains it
				list = append(list, p)
				continue
			}
			size += need
			m.records = append(m.records, c.claim(p))
			if p.transmissions--; p.transmissions > 0 {
				list = append(list, p)
			}
		}
		c.rumors[i] = list
	}
}

// claim returns the record to send about a member.
func (c *Core) claim(p *peer) record {
	r := p.record
	if r.status >= statusDead {
		r.age = min(max(c.now-p.ended, 0), ageMax-time.Second)
	}
	return r
}

// gossip sends urgent news and announcements in messages of their own.
func (c *Core) gossip() {
	if c.now < c.gossipAt {
		return
	}
	if len(c.rumors[0]) == 0 && len(c.announces) == 0 {
		return
	}
	c.gossipAt = c.now + c.settings.Interval/gossipFraction
	n := min(len(c.announces), announcesMax)
	for _, p := range c.announces[:n] {
		if p.state < Dead && p.name != c.answeredBy {
			c.send(p, &message{kind: kindGossip, records: []record{c.self.record}})
		}
	}
	c.announces = c.announces[n:]
	if len(c.rumors[0]) == 0 {
		return
	}
	for _, p := range c.pick(gossipFanout, func(p *peer) bool { return p.state < Dead }) {
		c.send(p, &message{kind: kindGossip})
	}
}

// headSize is more than the bytes of a message without records.
const headSize = 3 + 6*10 + 8 + 1 + NameMax + 2

// send encodes a message and adds it to the effects.
func (c *Core) send(to *peer, m *message) {
	m.boot, m.digest, m.cutOff = c.self.boot, c.digest, c.cutOff
	if m.kind != kindSync && m.kind != kindLeave {
		size := headSize
		for i := range m.records {
			size += recordSize(&m.records[i])
		}
		c.addNews(to, m, size)
		if m.kind == kindGossip && len(m.records) == 0 {
			return
		}
	}
	payload := appendMessage(nil, m)
	c.outgoing = append(c.outgoing, Outgoing{To: to.name, Address: to.address, Payload: payload})
	c.stats.Sent++
	c.stats.SentBytes += uint64(len(payload))
}

// ack answers a ping, or a request whose target is alive.
func (c *Core) ack(to *peer, sequence, echo uint64) {
	c.send(to, &message{
		kind: kindAck, sequence: sequence, echo: echo,
		knownBoot: to.boot, knownIncarnation: to.incarnation, knownStatus: to.status,
	})
}

// A node pings one of the dead members from time to time, so that the two sides of a
// partition find each other again: every reconnectIntervals, and more rarely in a large
// cluster, so that all nodes together send about reconnectRate pings per interval. One
// contact is enough, because all claims are exchanged then.
const (
	reconnectIntervals = 2
	reconnectRate      = 4
)

// reconnect also pings first members that have left: after a new start, such a member may
// know no running node.
func (c *Core) reconnect() {
	if !c.joined || c.now < c.reconnectAt || c.count[Dead]+c.count[Left] == 0 {
		return
	}
	c.reconnectAt = c.now + c.settings.Interval*time.Duration(max(reconnectIntervals, c.count[Alive]/reconnectRate))
	for _, p := range c.pick(1, func(p *peer) bool { return p.state == Dead || p.state == Left && p.first }) {
		c.ping(p, 0)
	}
}

// forget removes members that have been Dead or Left for long. The claims of other nodes
// about them carry their age, so they do not come back.
func (c *Core) forget() {
	for _, p := range slices.Clone(c.down) {
		switch age := c.now - p.ended; {
		case p.first:
		case p.state == Left && age >= c.settings.ForgetLeft:
			c.remove(p)
		case p.state == Dead && age >= c.settings.ForgetDead && !c.cutOff:
			c.remove(p)
		}
	}
}

// remove removes a member from all lists.
func (c *Core) remove(p *peer) {
	c.endRumor(p)
	if p.probe != nil {
		c.endProbe(p.probe)
	}
	for _, q := range c.probes {
		q.helpers = slices.DeleteFunc(q.helpers, func(h helper) bool { return h.peer == p })
	}
	c.relays = slices.DeleteFunc(c.relays, func(r relay) bool { return r.target == p || r.requester == p })
	is := func(q *peer) bool { return q == p }
	c.announces = slices.DeleteFunc(c.announces, is)
	c.ring = slices.DeleteFunc(c.ring, is)
	c.down = slices.DeleteFunc(c.down, is)
	c.count[p.state]--
	c.digest ^= p.digest()
	delete(c.peers, p.name)
	c.event(EventForgotten, p)
}
