package cluster

import (
	"fmt"
	"slices"
)

// A node that has joined, and whose process has ended without leaving, remains in the
// address table, and the others wait for its next process. An operator can remove it
// (removal.go). Then the core of each node drops the messages that it keeps for the node,
// and agrees without it. Messages that the node has sent before are handled as usual.
//
// The peer stays in memory, as that of a node that has left: the pool keeps the guests of
// the node for its next process.

// releaseForgotten looks which nodes the address table does not have any more, and drops the
// messages that are kept for them.
func (c *core) releaseForgotten() {
	for _, p := range slices.Clone(c.ordered) { // follow may add a peer
		if p.slot != nil {
			continue
		}
		boot, known := c.places.Boot(p.name)
		if !known && p.boot != 0 {
			p.forget(p.boot)
		}
		p.boot, p.forgotten = boot, p.forgotten && !known
	}
}

// forget drops the messages for a process of the node that was removed from the address
// table. The process has ended, or ends as soon as it learns this. So its messages that may
// still be on their way do not delay the end of their group. The next process of the node
// may have been found already, if this node learns of the removal late. Then nothing is to
// be done.
func (p *peer) forget(boot uint64) {
	if !p.session.Exclude(boot) {
		return
	}
	c := p.core
	p.forgotten, p.found, p.lostAt, p.changed = true, false, c.now, true
	p.silent, p.draining, p.left, p.ended, p.finished = false, false, false, false, false
	c.groups.restarted(p.name)
	p.in, p.returned = map[uint64]*inPair{}, nil
	p.answers, p.full = nil, false
	why := fmt.Errorf("%w: %s was removed from the cluster", ErrUnreachable, p.name)
	for _, pair := range p.out {
		pair.away = false
		pair.takeBack(errProcessEnded) // no process has the messages, so none of them is in doubt
		pair.follow()
		pair.expire(c.now, why)
	}
	p.releasePlaces()
	for _, pair := range p.waiting {
		pair.waiting = false // they have nothing to send
	}
	p.waiting = nil
}

// removeForgotten tells failure detection which nodes were removed from the address table, so
// that they do not count for the majority any more. Each node does it, because not every
// failure detector tells the others.
func (n *Node) removeForgotten(where *lookup) {
	var names []string
	for _, t := range where.replica.Nodes() { // by name
		names = append(names, t.Name)
	}
	for _, name := range n.listed {
		if _, found := slices.BinarySearch(names, name); !found {
			_ = n.detector.Remove(name) // it does not know the node, or believes that it is alive
		}
	}
	n.listed = names
}
