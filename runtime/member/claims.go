package member

import "bytes"

// handle handles a parsed message.
func (c *Core) handle(from string, m *message) {
	if p := c.peers[from]; p != nil && m.boot < p.boot {
		c.handleFormer(p, m)
		return
	}
	news := false
	c.announcing = c.isJoinAnswer(from, m)
	for i := range m.records {
		if c.learn(&m.records[i]) {
			news = true
		}
	}
	c.announcing = false
	if m.knownBoot > 0 { // pings and acks contain a claim about this node
		c.learnAboutSelf(&record{boot: m.knownBoot, incarnation: m.knownIncarnation, status: m.knownStatus}, false)
	}
	p := c.peers[from]
	if p == nil || c.replaced {
		c.stats.Unknown++
		return
	}
	if m.boot == p.boot {
		p.cutOff = m.cutOff
	}
	if c.leaving {
		if m.kind == kindAck && m.echo == c.self.boot && m.sequence == c.sequence && c.farewells > 0 { // not of an earlier ping
			c.farewells--
		}
		return
	}
	c.handleKind(p, m, news)
}

func (c *Core) handleKind(p *peer, m *message, news bool) {
	if m.kind == kindPing {
		c.answerPing(p, m)
	}
	if m.boot == p.boot && c.isSignOfLife(m) {
		c.heard(p)
	}
	switch m.kind {
	case kindPing:
		c.compareDigest(p, m)
	case kindAck:
		c.handleAck(p, m)
	case kindNack:
		c.handleNack(p, m)
	case kindPingRequest:
		c.startRelay(p, m)
	case kindSync:
		c.handleSync(p, m, news)
	case kindLeave:
		c.ack(p, m.sequence, m.boot)
	}
}

// isSignOfLife reports whether a message shows that its sender can be reached. Answers
// do: they prove that the sender has heard a question. Other messages are not enough if
// the sender reaches no majority, because it may hear nothing, or if it could not reach
// this node.
func (c *Core) isSignOfLife(m *message) bool {
	switch m.kind {
	case kindAck, kindNack:
		return true
	case kindLeave:
		return false
	}
	return !m.cutOff && (m.knownBoot != c.self.boot || m.knownStatus == statusAlive)
}

func (c *Core) answerPing(p *peer, m *message) {
	p.toldAt = c.now
	answer := &message{
		kind: kindAck, sequence: m.sequence, echo: m.boot,
		knownBoot: p.boot, knownIncarnation: p.incarnation, knownStatus: p.status,
	}
	if c.self.compare(m.knownBoot, m.knownIncarnation, m.knownStatus) != 0 {
		answer.records = []record{c.self.record}
	}
	c.send(p, answer)
}

func (c *Core) handleAck(p *peer, m *message) {
	if m.echo != c.self.boot {
		c.handleForeignAnswer(m)
		return
	}
	c.improve()
	for _, q := range c.probes {
		if q.sequence != m.sequence || q.target == p {
			continue
		}
		for _, h := range q.helpers {
			if h.peer == p { // a helper has reached the target
				c.endProbe(q)
				c.setState(q.target, Alive)
				return
			}
		}
	}
	c.compareDigest(p, m)
}

// handleNack notes that a helper could not reach the target. The target is suspected when
// all helpers have answered.
func (c *Core) handleNack(p *peer, m *message) {
	if m.echo != c.self.boot {
		c.handleForeignAnswer(m)
		return
	}
	for _, q := range c.probes {
		if q.sequence != m.sequence || q.helpers == nil {
			continue
		}
		all := true
		for i := range q.helpers {
			h := &q.helpers[i]
			h.nacked = h.nacked || h.peer == p
			all = all && h.nacked
		}
		if all {
			c.fail(q)
		}
		return
	}
}

// learn merges a claim and reports whether it was new.
func (c *Core) learn(r *record) (news bool) {
	if r.name == c.self.name {
		return c.learnAboutSelf(r, true)
	}
	p := c.peers[r.name]
	if p == nil {
		return c.learnName(r)
	}
	switch order := r.compare(p.boot, p.incarnation, p.status); {
	case order > 0:
		c.replace(p, r)
		return true
	case order < 0:
		return false
	case r.status == statusSuspect && c.accuse(p, r.accusers):
		c.spread(p, true)
		return true
	case r.status == statusAlive && r.address != p.address:
		c.reportDuplicate(p)
	}
	return false
}

// learnName adds a member. Claims about members that this node would forget at once are
// ignored.
func (c *Core) learnName(r *record) (news bool) {
	if r.status == statusDead && r.age >= c.settings.ForgetDead || r.status == statusLeft && r.age >= c.settings.ForgetLeft {
		return false
	}
	if len(c.ring) >= membersMax && !c.forgetOldest() {
		c.stats.Full++
		return false
	}
	p := &peer{record: record{name: r.name}, state: Dead}
	c.add(p)
	c.replace(p, r)
	return true
}

// forgetOldest makes room for a new member: it forgets the member that left first.
func (c *Core) forgetOldest() bool {
	var oldest *peer
	for _, p := range c.down {
		if p.state == Left && !p.first && (oldest == nil || p.ended < oldest.ended) {
			oldest = p
		}
	}
	if oldest != nil {
		c.remove(oldest)
	}
	return oldest != nil
}

// add adds a member to the lists, at a random place of the probing order.
func (c *Core) add(p *peer) {
	c.peers[p.name] = p
	c.ring = append(c.ring, p)
	last := len(c.ring) - 1
	at := c.rng.IntN(len(c.ring))
	c.ring[at], c.ring[last] = c.ring[last], c.ring[at]
	c.count[p.state]++
	if p.state >= Suspected {
		c.down = append(c.down, p)
	}
}

// replace stores a greater claim about a member.
func (c *Core) replace(p *peer, r *record) {
	before := p.record
	c.digest ^= p.digest()
	p.record = *r
	p.age, p.spreadAt = 0, 0
	if p.state == Suspected && r.status == statusSuspect && r.boot == before.boot && r.incarnation == before.incarnation {
		c.accuse(p, before.accusers) // this node could not reach the member, either
	}
	c.digest ^= p.digest()
	p.ended = c.now - r.age

	if r.boot > before.boot { // another process
		p.since, p.cutOff, p.duplicate, p.toldAt, p.syncedAt = c.now, false, false, 0, 0
		if p.probe != nil {
			c.endProbe(p.probe)
		}
		c.begin(p)
	} else if r.status == statusAlive && (before.address != r.address || !bytes.Equal(before.meta, r.meta)) {
		c.event(EventUpdated, p)
	}
	c.follow(p)
	c.spread(p, r.status == statusSuspect || r.status == statusDead || r.boot == before.boot && r.status == statusAlive && before.status != statusAlive)
}

// begin sets the first state of a process and reports it.
func (c *Core) begin(p *peer) {
	state, k := Alive, EventJoined
	switch p.status {
	case statusDead:
		state, k = Dead, EventDead
	case statusLeft:
		state, k = Left, EventLeft
	}
	c.move(p, state)
	c.event(k, p)
	if c.announcing && state == Alive {
		c.announces = append(c.announces, p)
	}
}

// follow sets the state of a member to its claim.
func (c *Core) follow(p *peer) {
	switch p.status {
	case statusAlive:
		if p.probe != nil {
			c.endProbe(p.probe)
		}
		c.setState(p, Alive)
	case statusSuspect:
		if p.state != Suspected {
			c.beginSuspicion(p)
		}
	case statusDead:
		c.setState(p, Dead)
	case statusLeft:
		c.setState(p, Left)
	}
}

// learnAboutSelf refutes claims that are wrong, and notices other processes with the same
// name. Two processes cannot have the same address, so a claim with the address of this
// node is about a former process. Not all claims contain an address.
func (c *Core) learnAboutSelf(r *record, hasAddress bool) (news bool) {
	self := c.self
	switch {
	case r.boot < self.boot || c.leaving:
		return false
	case r.boot > self.boot && r.boot < countMax && (!c.joined || r.status >= statusDead || hasAddress && r.address == self.address || hasAddress && c.owner()):
		// A former process of this node had a higher boot id, or this one has the name.
		c.changeSelf(r.boot+1, 0)
	case r.boot > self.boot && !hasAddress:
		return false
	case r.boot > self.boot:
		c.replaced = true
		c.event(EventReplaced, self)
		c.checkFence()
		return false
	case r.status != statusAlive && r.incarnation >= self.incarnation:
		c.stats.Refutations++
		c.worsen(1)
		if r.incarnation < countMax {
			c.changeSelf(self.boot, r.incarnation+1)
		} else { // no process refutes so often: the claim is wrong, and a higher number would be malformed
			c.changeSelf(self.boot+1, 0)
		}
		if r.status == statusDead {
			// This node was cut off, and its claims about others are wrong, too. It
			// exchanges all claims at once, so that the others can refute them.
			c.settled, c.syncAt = false, c.now
		}
	case hasAddress && r.address != self.address:
		c.reportDuplicate(self)
		return false
	default:
		return false
	}
	c.spread(self, true)
	return true
}

func (c *Core) changeSelf(boot, incarnation uint64) {
	c.digest ^= c.self.digest()
	c.self.boot, c.self.incarnation = boot, incarnation
	c.digest ^= c.self.digest()
}
