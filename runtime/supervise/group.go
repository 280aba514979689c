package supervise

import (
	"time"

	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/pool"
)

// phase is what a group is about.
type phase uint8

const (
	steady   phase = iota
	emptying       // its children from first on are stopped, last first
	filling        // they are started, first first
)

// group is the state of a Group.
type group struct {
	Group
	children []*child        // in the order in which they start
	recent   []time.Duration // the restarts within the period, oldest first
	phase    phase
	first    int // the children from here on are being restarted
}

func (g *group) init(spec Group, children [][]child) {
	g.Group = spec
	for _, p := range spec.Processors {
		if p < 0 || p >= len(children) {
			continue
		}
		for i := range children[p] {
			if c := &children[p][i]; c.group == nil {
				c.group, c.position = g, len(g.children)
				g.children = append(g.children, c)
			}
		}
	}
}

// mayRestart counts a restart and reports whether the intensity allows it.
func (g *group) mayRestart(now time.Duration) bool {
	if g == nil || g.Period <= 0 {
		return true
	}
	old := 0
	for old < len(g.recent) && now-g.recent[old] > g.Period && !bug.On(bug.IntensityForEver) {
		old++
	}
	g.recent = append(g.recent[old:], now)
	return len(g.recent) <= g.Intensity
}

// restart begins the restart of the others when c, which is down, is restarted.
// One that has come to its end before takes part: an OTP supervisor starts all
// whose specification it has, and forgets only those of temporary children.
func (g *group) restart(c *child) {
	if g == nil || g.Strategy == OneForOne {
		return
	}
	g.phase, g.first = emptying, 0
	if g.Strategy == RestForOne && !bug.On(bug.RestIsAll) {
		g.first = c.position
	}
}

// stops reports whether c is to stop, or will be, for the restart of another.
func (g *group) stops(c *child) bool {
	return g != nil && g.phase == emptying && c.position >= g.first && !c.inputsDone
}

// proceedGroup gives the next order of a group's restart, when nothing is left to
// wait for.
func (s *Supervisor) proceedGroup(g *group) {
	if g.phase == emptying && s.empty(g) {
		g.phase = filling
	}
	if g.phase == filling && s.filled(g) {
		g.phase = steady
	}
}

// empty stops the last child that lives; it reports whether there was none, and no
// delay has to pass.
func (s *Supervisor) empty(g *group) bool {
	for i := len(g.children) - 1; i >= g.first; i-- {
		switch c := g.children[i]; {
		case c.state == stopping:
			return bug.On(bug.StartsTooEarly)
		case c.state.lives() && !c.inputsDone: // one that could not be started again is left to end
			c.state = stopping
			s.effects = append(s.effects, pool.ChildEffect{Kind: pool.EffectStop, Child: c.id})
			return false
		}
	}
	for _, c := range g.children[g.first:] {
		if c.state == waiting {
			return false
		}
	}
	return true
}

// filled starts the first child that is down; it reports whether there was none.
func (s *Supervisor) filled(g *group) bool {
	for _, c := range g.children[g.first:] {
		if c.state == down {
			s.start(c)
		}
		if c.state == starting {
			return false
		}
	}
	return true
}
