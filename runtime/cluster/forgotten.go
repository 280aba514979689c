package cluster

import (
	"fmt"
	"log/slog"

	"github.com/topogen/topogen/runtime/cluster/session"
)

// A node that has joined, and whose process has ended without leaving, remains in the
// address table, and the others wait for its next process. An operator can remove it
// (removal.go). Then, and when a node has left, the core of each node drops the messages that it
// keeps for the node, and agrees without it. Messages that the node has sent before are handled as usual.
//
// The peer is dropped later (gone.go).
//
// The address table also says which process has the name of a node (identity.go). The session with
// the node follows the table: it accepts only this process, and ends with the process before.

// followTable looks whether the node has left, or is not in the address table any more, and
// drops the messages that are kept for it. A source that sends to all nodes would wait for
// these messages.
func (p *nodePeer) followTable() {
	boot, known := p.core.places.Boot(p.name)
	switch {
	case !known && p.boot != 0:
		p.forget(p.boot)
	case p.boot != 0 && boot != 0 && boot != p.boot:
		p.supersede(p.boot)
	}
	p.boot, p.forgotten = boot, p.forgotten && !known
}

// forget drops the messages for a process of the node that has left, or was removed from the address
// table. The process has ended, or ends as soon as it learns this. So its messages that may
// still be on their way do not delay the end of their group. The next process of the node
// may have been found already, if this node learns of the removal late. Then nothing is to
// be done.
func (p *nodePeer) forget(boot uint64) {
	c := p.core
	if !p.session.Exclude(c.role.processOf(p, boot)) {
		return
	}
	p.forgotten, p.found, p.lostAt, p.changed = true, false, c.now, true
	p.silent, p.draining, p.heldBack, p.ended, p.finished = false, false, nil, false, false
	p.forgetProcess()
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

// supersede ends the session with a process of the node, because the address table has another
// one. The session refuses the former process, which may still run.
func (p *nodePeer) supersede(former uint64) {
	if !p.session.Supersede(former) {
		return // the session has another process, or none
	}
	p.found, p.lostAt, p.silent, p.changed = false, p.core.now, false, true
	p.restart(nil)
	p.releasePlaces()
}

// restarted handles another process of the node.
func (p *nodePeer) restarted(e session.PeerRestarted) { p.restart(p.core.role.forgottenBy(p, e)) }

// restart forgets what belongs to the former process of the node. The messages that are kept
// go to the next process. forgot is not nil if the process runs and has forgotten this client: then
// the messages that were sent are lost.
func (p *nodePeer) restart(forgot error) {
	if forgot == nil {
		p.logRarely(&p.own.restarts, slog.LevelInfo, "topogen: another node was restarted")
	}
	p.forgetProcess()
	p.waiting, p.draining, p.heldBack, p.ended, p.finished = nil, false, nil, false, false
	p.toldFull, p.saidFull = nil, nil
	for _, pair := range p.out {
		if pair.waiting = false; forgot != nil {
			pair.loseSent(forgot)
		}
		pair.restart()
	}
}
