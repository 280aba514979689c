package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/piper/border"
)

// guestSlot has the guests of one client after another, or of one node after another. A guest
// takes about 1 KiB, and the pool keeps it until its end. So when a client was forgotten and all its messages are
// handled, the next client takes over its guests, as the next process of a node does. The
// memory for guests is limited by the number of clients, and of nodes, at one time.
type guestSlot struct {
	name  string // in place of the name of a node
	pairs map[border.Pair]*inPair
}

func newGuestSlot(of string, number int) *guestSlot {
	return &guestSlot{name: fmt.Sprint(of, " ", number), pairs: map[border.Pair]*inPair{}}
}

// begin gives the guests to the next client or node.
func (s *guestSlot) begin(p *peer) {
	for _, in := range s.pairs {
		in.peer, in.listed = p, false
		if p.slot == nil {
			in.arrivals.SetNode(p.name)
		}
	}
}

// clientPeers are the clients that a node knows.
type clientPeers struct {
	slots    int          // made so far
	free     []*guestSlot // their next client is not known yet
	leaving  []*peer      // forgotten, with messages that are not handled yet
	sessions uint32       // with clients, since this process has begun

	refusals map[string]*peerRefusals // by certificate

	forgotten func(name string) bool   // called for each client that is forgotten, unless it returns false; may be nil
	drop      func(name string)        // ends the connection of a client; may be nil
	owner     func(name string) string // the certificate of a client; nil: each client has its own
}

func (c *clientPeers) ownerOf(name string) string {
	if c.owner == nil {
		return name
	}
	return c.owner(name)
}

// take returns the guests for a new client.
func (c *clientPeers) take(p *peer) *guestSlot {
	c.collect()
	if n := len(c.free); n > 0 {
		slot := c.free[n-1]
		c.free = c.free[:n-1]
		slot.begin(p)
		return slot
	}
	c.slots++
	return newGuestSlot("client", c.slots)
}

// collect frees the guests of forgotten clients whose messages are handled.
func (c *clientPeers) collect() {
	c.leaving = slices.DeleteFunc(c.leaving, func(p *peer) bool {
		idle := p.isHandled()
		if idle {
			c.free = append(c.free, p.slot)
		}
		return idle
	})
}

// isHandled reports whether all messages that the peer has sent are handled.
func (p *peer) isHandled() bool {
	for _, in := range p.pairs {
		if in.waiting() > 0 {
			return false
		}
	}
	return true
}

// forgetAt returns when a client may be forgotten. A client that has said that it ends, or
// that has never had a session, is forgotten when its connection ends.
func (p *peer) forgetAt() (at time.Duration, ok bool) {
	switch {
	case p.reachable && !p.passedOn:
		return 0, false
	case p.passedOn && p.reachable: // no connection tells that it has ended
		return p.heardAt + clientWindow, true
	case p.left, !p.found:
		return p.lostAt, true
	}
	return p.lostAt + clientWindow, true
}

// forgetClients forgets the clients that were not connected for clientWindow.
func (c *core) forgetClients(now time.Duration) {
	c.ordered = slices.DeleteFunc(c.ordered, func(p *peer) bool {
		if p.slot == nil {
			return false
		}
		at, ok := p.forgetAt()
		if !ok || now < at {
			return false
		}
		return c.forgetClient(p)
	})
	c.clients.collect()
	c.reportRefusals(now)
}

// checkPair refuses pairs that a client must not open: it sends only as an external
// processor.
func (p *peer) checkPair(pair border.Pair) error {
	if p.slot == nil {
		return nil
	}
	list := p.core.config.Processors
	if pair.From < 0 || pair.From >= len(list) || list[pair.From].Instances > 0 || pair.FromInstance != 0 {
		return fmt.Errorf("%w: a client sends as a processor that is not external", errMalformed)
	}
	return nil // the pool checks the receiver
}
