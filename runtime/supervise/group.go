package supervise

import (
	"time"

	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/piper"
)

// group is the state of a Group.
type group struct {
	Group
	children       []*child        // in the order in which they start
	recent         []time.Duration // the restarts within the period, oldest first
	stoppingOthers bool            // the children from first on are being stopped, last first; else those that are down are started, first first
	first          int
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
	g.stoppingOthers, g.first = true, 0
	if g.Strategy == RestForOne && !bug.On(bug.RestIsAll) {
		g.first = c.position
	}
}

// stops reports whether c is to stop, or will be, for the restart of another.
func (g *group) stops(c *child) bool {
	return g != nil && g.stoppingOthers && c.position >= g.first && !c.inputsDone
}

// proceedGroup gives the next order of a group's restart, when nothing is left to
// wait for.
func (s *Supervisor) proceedGroup(g *group) {
	if g.stoppingOthers && s.stopNext(g) {
		g.stoppingOthers = false
	}
	if !g.stoppingOthers {
		s.startNext(g)
	}
}

// stopNext stops the last child that lives; it reports whether there was none, and no
// delay has to pass.
func (s *Supervisor) stopNext(g *group) bool {
	for i := len(g.children) - 1; i >= g.first; i-- {
		switch c := g.children[i]; {
		case c.state == stopping:
			return bug.On(bug.StartsTooEarly)
		case c.state.alive() && !c.inputsDone: // one that could not be started again is left to end
			c.state = stopping
			s.effects = append(s.effects, piper.ChildEffect{Kind: piper.EffectStop, Child: c.id})
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

// startNext starts the first child that is down, unless one is being started.
func (s *Supervisor) startNext(g *group) {
	for _, c := range g.children[g.first:] {
		if c.state == down {
			s.start(c)
		}
		if c.state == starting {
			return
		}
	}
}
