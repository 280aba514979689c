package cluster

import "log/slog"

// The address table says which process has the name of a node, see identity.go. The session with
// the node follows the table: it accepts only this process, and ends with the process before.

// accepts reports whether the address table has the process that answers for the
// name. A name that is not in the table has no process yet. A client has no table of its own.
func (c *core) accepts(name string, boot uint64) bool {
	if c.client || isClient(name) || c.places == nil {
		return true
	}
	now, known := c.places.Boot(name)
	return !known || now == 0 || now == boot
}

// supersede ends the session with a process of the node, because the address table has another
// one. The session refuses the former process, which may still run.
func (p *peer) supersede(former uint64) {
	if !p.session.Supersede(former) {
		return // the session has another process, or none
	}
	p.found, p.lostAt, p.silent, p.changed = false, p.core.now, false, true
	p.restarted(nil)
	p.releasePlaces()
}

// restarted forgets what belongs to the former process of the node. The messages that are kept
// go to the next process. forgot is not nil if the process runs and has forgotten this client: then
// the messages that were sent are lost.
func (p *peer) restarted(forgot error) {
	if forgot == nil {
		p.logRarely(&p.refusals().restarts, slog.LevelInfo, "topogen: another node was restarted")
	}
	p.core.groups.restarted(p.name)
	p.in, p.returned = map[uint64]*inPair{}, nil
	p.answers, p.full = nil, false
	p.waiting, p.draining, p.heldBack, p.left, p.ended, p.finished = nil, false, nil, false, false, false
	for _, pair := range p.out {
		if pair.waiting = false; forgot != nil {
			pair.loseSent(forgot)
		}
		pair.restart()
	}
}

// isHeard notes a sign of life of the node.
func (p *peer) isHeard() {
	if p.heard = true; p.silent {
		p.silent = false
		p.resume()
	}
}
