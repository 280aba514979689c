package cluster

import (
	"fmt"
	"slices"
)

// A node that has joined, and whose process has ended without leaving, remains in the
// address table, and the others wait for its next process. An operator can remove it
// (removal.go). Then, and when a node has left, the core of each node drops the messages that it
// keeps for the node, and agrees without it. Messages that the node has sent before are handled as usual.
//
// The peer is dropped later (gone.go).

// releaseForgotten looks which nodes have left, or are not in the address table any more, and
// drops the messages that are kept for them. A source that sends to all nodes would wait for
// these messages.
func (c *core) releaseForgotten() {
	for _, p := range slices.Clone(c.ordered) { // follow may add a peer
		if p.slot != nil {
			continue
		}
		boot, known := c.places.Boot(p.name)
		switch {
		case !known && p.boot != 0:
			p.forget(p.boot)
		case p.boot != 0 && boot != 0 && boot != p.boot:
			p.supersede(p.boot)
		}
		p.boot, p.forgotten = boot, p.forgotten && !known
	}
}

// forget drops the messages for a process of the node that has left, or was removed from the address
// table. The process has ended, or ends as soon as it learns this. So its messages that may
// still be on their way do not delay the end of their group. The next process of the node
// may have been found already, if this node learns of the removal late. Then nothing is to
// be done.
func (p *peer) forget(boot uint64) {
	c := p.core
	if c.client && (p.process^boot)&^sessionMask == 0 {
		boot = p.process
	}
	if !p.session.Exclude(boot) {
		return
	}
	p.forgotten, p.found, p.lostAt, p.changed = true, false, c.now, true
	p.silent, p.draining, p.heldBack, p.left, p.ended, p.finished = false, false, nil, false, false, false
	c.groups.restarted(p.name)
	p.in, p.returned = map[uint64]*inPair{}, nil
	p.answers, p.full = nil, false
	why := fmt.Errorf("%w: %s is no longer a node of the cluster", ErrUnreachable, p.name)
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
