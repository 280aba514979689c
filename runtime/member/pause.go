package member

import "time"

// advance sets the time. If the process did not run when Tick was due, it extends all
// timeouts by this pause: answers may have arrived in the pause, and wait to be handled.
// So a process that was stopped suspects no node, and kills no suspected node, because
// of its own pause.
func (c *Core) advance(now time.Duration) {
	now = max(now, c.now)
	c.now = now
	late := now - c.due
	if late <= c.settings.DirectTimeout/pauseFraction {
		return
	}
	c.stats.Pauses++
	c.due = now
	c.worsen(1)
	for _, p := range c.probes {
		p.again = later(p.again, late)
		p.deadline += late
	}
	for i := range c.relays {
		c.relays[i].again = later(c.relays[i].again, late)
		c.relays[i].deadline += late
	}
	for _, p := range c.down {
		if p.state == Suspected {
			p.suspected += late
			p.deadline += late
			if p.spreadAt > 0 {
				p.spreadAt += late
			}
		}
	}
}

// pauseFraction of DirectTimeout is a pause: shorter delays leave enough time for
// answers.
const pauseFraction = 4

func later(at, by time.Duration) time.Duration {
	if at == forever {
		return at
	}
	return at + by
}

// Local health (Lifeguard, section IV-A) is 0 for a healthy node. It rises with evidence
// that this node itself is slow or badly connected: helpers that do not answer at all,
// suspicions about this node, pauses. An answered probe lowers it.

func (c *Core) worsen(by int) { c.health = min(c.health+by, c.settings.Health-1) }

func (c *Core) improve() { c.health = max(c.health-1, 0) }

// scaled multiplies a time by the local health.
func (c *Core) scaled(d time.Duration) time.Duration { return d * time.Duration(1+c.health) }
