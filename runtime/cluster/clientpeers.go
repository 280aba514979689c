package cluster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
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
		p.remote.opened(in)
	}
}

// clientPeers are the clients that a node knows.
type clientPeers struct {
	core     *nodeCore
	known    map[string]*clientPeer
	slots    int           // made so far
	free     []*guestSlot  // their next client is not known yet
	leaving  []*clientPeer // forgotten, with messages that are not handled yet
	sessions uint32        // with clients, since this process has begun

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

// newPeer makes a client that the node does not know.
func (c *clientPeers) newPeer(name string) (*clientPeer, error) {
	c.sessions++
	p := &clientPeer{clients: c, owner: c.ownerOf(name)}
	common, err := newPeer(c.core.core, p, session.Config{
		Plan: c.core.config.Plan, Peer: name, Boot: c.core.boot&^sessionMask | uint64(c.sessions),
	})
	if err != nil {
		return nil, err
	}
	p.peer = common
	p.heardAt = c.core.now
	p.guests = c.take(p)
	p.pairs = p.guests.pairs
	c.known[name] = p
	c.core.add(&p.peer)
	return p, nil
}

// sessionMask is the low half of the boot id of a node in a session with a client. A client notices
// by the low half that the node has forgotten it, and by the high half that the node still
// runs.
const sessionMask = 1<<32 - 1

// sender returns a client. A client that can be reached is new if the node does not know it.
func (c *clientPeers) sender(name string, alive bool) *peer {
	p := c.known[name]
	if p == nil && alive {
		var err error
		if p, err = c.newPeer(name); err != nil {
			c.core.refusePeer(name, err)
			return nil
		}
	}
	if p == nil {
		return nil
	}
	return &p.peer
}

// take returns the guests for a new client.
func (c *clientPeers) take(p *clientPeer) *guestSlot {
	c.collect()
	if n := len(c.free); n > 0 {
		slot := c.free[n-1]
		c.free = c.free[:n-1]
		slot.begin(&p.peer)
		return slot
	}
	c.slots++
	return newGuestSlot("client", c.slots)
}

// collect frees the guests of forgotten clients whose messages are handled.
func (c *clientPeers) collect() {
	c.leaving = slices.DeleteFunc(c.leaving, func(p *clientPeer) bool {
		idle := p.isHandled()
		if idle {
			c.free = append(c.free, p.guests)
		}
		return idle
	})
}

// areConnected reports whether a client can be reached.
func (c *clientPeers) areConnected() bool {
	for _, p := range c.known {
		if p.found && p.reachable {
			return true
		}
	}
	return false
}

// forgetOld forgets the clients that were not connected for clientWindow.
func (c *clientPeers) forgetOld(now time.Duration) {
	c.core.ordered = slices.DeleteFunc(c.core.ordered, func(o *peer) bool {
		p := c.known[o.name]
		if p == nil {
			return false
		}
		p.changed = true // its dueAt depends on expireAt
		at, ok := p.forgetAt()
		return ok && now >= at && c.forget(p)
	})
	c.collect()
	c.reportRefusals(now)
}

// forget forgets a client, and returns false if the client has come back. The caller
// removes it from core.ordered.
func (c *clientPeers) forget(p *clientPeer) bool {
	if f := c.forgotten; f != nil && !f(p.name) {
		return false
	}
	delete(c.known, p.name)
	c.leaving = append(c.leaving, p)
	return true
}

// refusalsOf returns what counts the refusals of the clients with a certificate.
func (c *clientPeers) refusalsOf(owner string) *peerRefusals {
	if c.refusals == nil {
		c.refusals = map[string]*peerRefusals{}
	}
	r := c.refusals[owner]
	if r == nil {
		r = new(peerRefusals)
		c.refusals[owner] = r
	}
	return r
}

// reportRefusals logs what was refused of clients, a minute after their last line.
func (c *clientPeers) reportRefusals(now time.Duration) {
	for _, owner := range slices.Sorted(maps.Keys(c.refusals)) {
		waits := false
		for _, r := range c.refusals[owner].list() {
			if r.logged && now < r.logAt {
				waits = true
				continue
			}
			if r.times > 0 {
				r.logAt = now + refusalLogEvery
				waits = true
			}
			r.report(c.core.log)
		}
		if !waits {
			delete(c.refusals, owner)
		}
	}
}
