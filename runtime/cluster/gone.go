package cluster

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/transport"
)

// Nodes come and go under new names, for example with each deployment. The parts of a node have
// entries for the others: a link that connects again and again, a session, a member of failure
// detection. One rule says when a name is gone, from the address table (isGone). Then all
// entries are removed, in the order of holders, each as soon as nothing of the node is in flight.
// A later process with the name is a new node for all of them.

// goneAfter is how long a name must be gone before its entries are removed. A node that joins is
// gone until it is in the address table, and asks several times a second in this time.
const goneAfter = 5 * time.Second

// goneEvery is how often names that are gone are looked at, while there are any.
const goneEvery = time.Second

// holder is a part of the node that has an entry for each other node.
type holder struct {
	what  string
	names func() []string   // of the nodes that it has an entry for
	drop  func(name string) // may leave the entry for now; nil: the part removes it by itself
}

// holders are all such parts. The links come last, because the others send along them.
func (g *gone) holders() []holder {
	n := g.node
	return []holder{
		{"core", g.corePeers, func(name string) { n.post(func(h *happened) { h.gone = append(h.gone, name) }) }},
		{"failure detection", g.detected, func(name string) { _ = n.detector.Remove(name) }}, // fails if the node is alive
		{"duplicates", n.duplicates.names, func(name string) { n.duplicates.drop(n.log, name) }},
		{"address table", g.grouped, nil},
		{"links", n.links.names, func(name string) { n.links.drop(name, n.table.Replica().Gone) }},
	}
}

// isGone is the rule: the address table says that the process of a node has left or was removed,
// or has never joined, and failure detection does not see it. A first member is never gone,
// because its instances and its vote stay with it.
func (g *gone) isGone(name string) bool {
	n := g.node
	_, first := n.settings.Nodes[name]
	return !first && name != n.settings.node && n.table.Replica().Gone(name) && !g.sees(name)
}

// sees reports whether failure detection sees a node, or has not decided yet.
func (g *gone) sees(name string) bool {
	return slices.ContainsFunc(g.node.detector.Members(), func(m member.Member) bool { return m.Name == name && m.State < member.Dead })
}

// corePeers are the nodes of the core.
func (g *gone) corePeers() (names []string) {
	n := g.node
	n.running.Lock()
	for name := range n.core.peers {
		names = append(names, name)
	}
	n.running.Unlock()
	n.runAgain() // the mailbox may have been filled in the meantime
	return names
}

// detected are the members of failure detection. It keeps nodes that have left for some time,
// so that late news about them is not taken for a new process, but sends nothing to them.
func (g *gone) detected() (names []string) {
	for _, m := range g.node.detector.Members() {
		if m.State != member.Left {
			names = append(names, m.Name)
		}
	}
	return names
}

// grouped are the members of the group that has the address table.
func (g *gone) grouped() []string {
	if t, ok := g.node.table.(table.Grouped); ok {
		return t.Group()
	}
	return nil
}

// gone are the names that are gone and still have entries.
type gone struct {
	node         *Node
	after, every time.Duration // goneAfter and goneEvery
	wake         chan struct{}
	since        map[string]time.Time // owned by run
}

func newGone() gone {
	return gone{after: goneAfter, every: goneEvery, wake: make(chan struct{}, 1), since: map[string]time.Time{}}
}

// look lets run look again.
func (g *gone) look() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// run removes the entries of nodes that are gone, until the node ends.
func (g *gone) run() {
	timer := time.NewTimer(g.every)
	defer timer.Stop()
	for {
		select {
		case <-g.node.ctx.Done():
			return
		case <-g.wake:
		case <-timer.C:
		}
		g.sweep(time.Now())
		timer.Stop()
		if len(g.since) > 0 {
			timer.Reset(g.every)
		}
	}
}

// sweep removes the entries of the nodes that have been gone long enough.
func (g *gone) sweep(now time.Time) {
	since := map[string]time.Time{}
	busy := map[string]bool{}
	for _, h := range g.holders() {
		for _, name := range h.names() {
			if !g.isGone(name) {
				continue
			}
			at, known := g.since[name]
			if !known {
				at = now
			}
			since[name] = at
			if now.Sub(at) >= g.after && !busy[name] {
				busy[name] = true // the parts after this one wait until it has removed the entry
				if h.drop != nil {
					h.drop(name)
				}
			}
		}
	}
	g.since = since
}

// links is the transport of the node and of its parts. They add peers to it, and only gone.run
// removes them.
type links struct {
	transport.Transport
	gone     *gone
	followed map[string]linkedProcess // see follow; by node

	mu    sync.Mutex
	peers map[string]time.Time // when the address was set last
}

func newLinks(t transport.Transport, g *gone) *links {
	return &links{Transport: t, gone: g, peers: map[string]time.Time{}}
}

// SetPeer implements transport.Transport.
func (l *links) SetPeer(name, address string) {
	l.mu.Lock()
	l.Transport.SetPeer(name, address)
	_, known := l.peers[name]
	l.peers[name] = time.Now()
	l.mu.Unlock()
	if !known {
		l.gone.look()
	}
}

// RemovePeer implements transport.Transport. Another part may need the peer.
func (l *links) RemovePeer(string) {}

func (l *links) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.peers))
}

// drop removes a peer, unless it has joined again, or a part has just needed it. After a node has
// joined, watch calls SetPeer, which comes after the drop or after the look at the table.
func (l *links) drop(name string, isGone func(string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isGone(name) && time.Since(l.peers[name]) >= l.gone.after {
		delete(l.peers, name)
		l.Transport.RemovePeer(name)
	}
}

// nodeGuests are the guests of nodes that are gone, for other nodes.
type nodeGuests struct {
	slots int          // made so far
	free  []*guestSlot // whose messages are handled
}

// take returns the guests for a node.
func (g *nodeGuests) take(p *nodePeer) *guestSlot {
	if last := len(g.free) - 1; last >= 0 {
		slot := g.free[last]
		g.free = g.free[:last]
		slot.begin(&p.peer)
		return slot
	}
	g.slots++
	return newGuestSlot("node", g.slots)
}

// mayDrop reports whether the peer of a node that is gone can be dropped: no messages for the
// node are kept, its own are handled, and no later process is known.
func (c *nodeCore) mayDrop(p *nodePeer) bool {
	if _, takesPart := slices.BinarySearch(c.participants(), p.name); takesPart {
		return false // it has joined again
	}
	if p.found && c.now-p.heardAt < goneAfter {
		return false // it has joined again, and the table of this node is late
	}
	away := func(pair *outPair) bool { return pair.away }
	return p.kept == 0 && p.isHandled() && !slices.ContainsFunc(p.out, away)
}

// drop removes the peer of a node that is gone.
func (c *nodeCore) drop(name string) {
	p := c.peers[name]
	if p == nil || !c.mayDrop(p) {
		return
	}
	p.in, p.returned, p.unconfirmed, p.waiting = map[uint64]*inPair{}, nil, nil, nil
	p.reportRefusals()
	for i := range c.groups.groups {
		delete(c.groups.groups[i].status, name)
	}
	p.found = false // nothing more is sent
	for _, pair := range p.out {
		pair.takeBack(errProcessEnded) // chunks that count as dropped, and that the process may have handled
	}
	p.releasePlaces()
	for _, pair := range p.out {
		pair.detach()
	}
	delete(c.peers, name)
	c.ordered = slices.DeleteFunc(c.ordered, func(o *peer) bool { return o == &p.peer })
	c.guests.free = append(c.guests.free, p.guests)
}

// detach removes a pair without messages from what refers to it. The next message for its
// instance makes a new one.
func (p *outPair) detach() {
	if e, all := p.to.(*castEnd); all {
		e.remove()
		return
	}
	if p.outlet.State == p {
		p.outlet.State = nil
	}
	for _, home := range p.homes {
		home.homes = slices.DeleteFunc(slices.Clone(home.homes), func(o *outPair) bool { return o == p })
	}
}
