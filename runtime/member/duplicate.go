package member

import "time"

// handleFormer handles a message of a process although another one with its name and a
// higher boot id is known. Either it was sent before the former process ended, or its
// process still runs, or the clock that gave the new process its boot id was set back. In
// the last case it must learn about the higher id, so that it can take one above.
func (c *Core) handleFormer(p *peer, m *message) {
	c.stats.Former++
	if c.leaving {
		return
	}
	address := p.address
	if p.state >= Suspected { // the known process does not need the messages any more
		for i := range m.records {
			if m.records[i].name == p.name {
				address = m.records[i].address
			}
		}
	}
	answer := &message{kind: kindGossip, boot: c.self.boot, digest: c.digest, records: []record{c.claim(p)}}
	payload := appendMessage(nil, answer)
	c.outgoing = append(c.outgoing, Outgoing{To: p.name, Address: address, Payload: payload})
	c.stats.Sent++
	c.stats.SentBytes += uint64(len(payload))
	if m.kind != kindSync && p.state < Suspected && c.now-p.since > c.messageAge() {
		c.reportDuplicate(p)
	}
}

// handleForeignAnswer handles an answer to a question of another process with the name of
// this node. Shortly after the start it belongs to the former process.
func (c *Core) handleForeignAnswer(m *message) {
	c.stats.Former++
	if m.echo < c.self.boot && c.now > c.messageAge() {
		c.reportDuplicate(c.self)
	}
}

// messageAge is the time in which messages of a process that has ended may still arrive.
func (c *Core) messageAge() time.Duration {
	return c.settings.DirectTimeout + c.settings.IndirectTimeout + c.settings.Suspicion
}

// reportDuplicate reports once for each boot id that two processes have one name.
func (c *Core) reportDuplicate(p *peer) {
	if !p.duplicate {
		p.duplicate = true
		c.event(EventDuplicate, p)
	}
}
