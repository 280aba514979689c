package member

import (
	"math"
	"slices"
	"time"
)

// confirmationsMax is the number of confirmations by other nodes that reduce the time of a
// suspicion to its minimum. Lifeguard found that more bring little.
const confirmationsMax = 3

// tellFraction: a node that suspects another one tells it six times in the least time of
// a suspicion, so that one of the messages and one of the answers arrive.
const tellFraction = 6

// lastPings are the pings that a node sends before it declares a member dead that only
// others could not reach: it may have missed the refutation. If the member is dead, the
// news of its death usually arrives before.
const lastPings = 2

func (c *Core) tellEvery() time.Duration { return c.settings.Suspicion / tellFraction }

// suspicionTime returns how long a suspicion lasts with a number of confirmations, of
// which needed reduce it to least (Lifeguard, section IV-B): each one reduces it less than
// the one before it.
func suspicionTime(least time.Duration, spread float64, confirmed, needed int) time.Duration {
	if needed <= 0 || confirmed >= needed || spread <= 1 {
		return least
	}
	rest := 1 - math.Log(float64(confirmed+1))/math.Log(float64(needed+1))
	return least + time.Duration(rest*(spread-1)*float64(least))
}

// spreadFraction: the other nodes learn of a suspicion after this part of its least time.
// Most suspicions end before, because the suspected node answers one of the pings. They cost
// no news and no refutation. Confirmations arrive early enough also later.
const spreadFraction = 3

// suspect notes that this node could not reach a member itself.
func (c *Core) suspect(p *peer, accusers []uint32) {
	if p.state >= Dead {
		return
	}
	added := c.accuse(p, accusers)
	switch {
	case p.status == statusSuspect && added:
		c.spread(p, true)
	case p.status == statusAlive && p.state != Suspected:
		p.spreadAt = c.now + c.settings.Suspicion/spreadFraction
	}
	if p.state != Suspected {
		c.beginSuspicion(p)
	}
	p.mine = true
	c.ping(p, 0) // the suspected node is asked first, so that it can refute
}

// spreadSuspicion makes a suspicion of this node a claim that others learn.
func (c *Core) spreadSuspicion(p *peer) {
	p.spreadAt = 0
	if p.status == statusAlive {
		c.digest ^= p.digest()
		p.status = statusSuspect
		c.digest ^= p.digest()
		c.spread(p, true)
	}
}

// accuse adds accusers to a suspicion.
func (c *Core) accuse(p *peer, accusers []uint32) (added bool) {
	p.accusers, added = addAccusers(p.accusers, accusers)
	if added && p.state == Suspected && p.asked == 0 {
		p.deadline = p.suspected + c.suspicionTime(p)
	}
	return added
}

func (c *Core) suspicionTime(p *peer) time.Duration {
	others := c.count[Alive] + c.count[ProbeFailed] // nodes that could confirm
	if p.state <= ProbeFailed {
		others--
	}
	return suspicionTime(c.settings.Suspicion, c.settings.Spread, len(p.accusers)-1, min(confirmationsMax, others))
}

func (c *Core) beginSuspicion(p *peer) {
	p.suspected, p.mine, p.asked = c.now, false, 0
	p.deadline = c.now + c.suspicionTime(p)
	c.setState(p, Suspected)
}

// checkSuspicions is step 3: a suspected member that was not heard in time is Dead. Until
// then, the nodes that could not reach it tell it so.
func (c *Core) checkSuspicions() {
	for _, p := range slices.Clone(c.down) {
		switch {
		case p.state != Suspected:
		case c.now >= p.deadline && !p.mine && p.asked < lastPings:
			p.asked++
			p.deadline = c.now + c.scaled(c.settings.DirectTimeout)/lastPings
			c.ping(p, 0)
		case c.now >= p.deadline:
			c.digest ^= p.digest()
			p.status, p.ended = statusDead, c.now
			c.digest ^= p.digest()
			c.setState(p, Dead)
			c.spread(p, p.mine) // the others come to this conclusion at about the same time
			c.ping(p, 0)        // if it is alive, it refutes at once
		case p.spreadAt > 0 && c.now >= p.spreadAt:
			c.spreadSuspicion(p)
			c.ping(p, 0)
		case p.mine && c.now >= p.toldAt+c.tellEvery():
			c.ping(p, 0)
		}
	}
}

// heard notes a sign of life. A suspicion ends here at once. Other nodes, and this one if
// it has declared the member dead, need the member's own refutation: the member is told.
func (c *Core) heard(p *peer) {
	if p.probe != nil {
		c.endProbe(p.probe)
	}
	if len(c.relays) > 0 {
		c.endRelays(p)
	}
	if p.state == ProbeFailed || p.state == Suspected {
		c.setState(p, Alive)
	}
	if p.status == statusAlive {
		p.accusers, p.spreadAt = nil, 0
	}
	if (p.status == statusSuspect || p.status == statusDead) && c.now >= p.toldAt+c.tellEvery() {
		c.ping(p, 0)
	}
}

// setState changes the state of a member and reports it.
func (c *Core) setState(p *peer, s State) {
	if p.state == s {
		return
	}
	c.move(p, s)
	kinds := [...]EventKind{Alive: EventAlive, ProbeFailed: EventProbeFailed, Suspected: EventSuspected, Dead: EventDead, Left: EventLeft}
	c.event(kinds[s], p)
}

// move changes the state of a member.
func (c *Core) move(p *peer, s State) {
	c.count[p.state]--
	c.count[s]++
	if wasDown, isDown := p.state >= Suspected, s >= Suspected; isDown && !wasDown {
		c.down = append(c.down, p)
	} else if wasDown && !isDown {
		c.down = slices.DeleteFunc(c.down, func(q *peer) bool { return q == p })
	}
	if s >= Dead && p.probe != nil {
		c.endProbe(p.probe)
	}
	p.state, p.changed = s, c.now
}
