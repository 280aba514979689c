package supervise

import (
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// group is the state of a Group.
type group struct {
	Group
	children []*child        // in start order
	recent   []time.Duration // times of the restarts within the period, oldest first
	// stoppingOthers: the children from first on are being stopped, last first. Otherwise
	// the children that are down are being started, in order.
	stoppingOthers bool
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
	for old < len(g.recent) && now-g.recent[old] > g.Period {
		old++
	}
	g.recent = append(g.recent[old:], now)
	return len(g.recent) <= g.Intensity
}

// restart begins to restart the other children, because c, which is down, is restarted. A
// child that has ended cleanly is restarted too: an OTP supervisor starts all children
// that it has specifications of, and only forgets temporary ones.
func (g *group) restart(c *child) {
	if g == nil || g.Strategy == OneForOne {
		return
	}
	g.stoppingOthers, g.first = true, 0
	if g.Strategy == RestForOne {
		g.first = c.position
	}
}

// stops reports whether c is being stopped, or will be, for the restart of another child.
func (g *group) stops(c *child) bool {
	return g != nil && g.stoppingOthers && c.position >= g.first && !c.inputsDone
}

// proceedGroup gives the next order of a group's restart, unless an order is in progress
// or a delay has not passed.
func (s *Supervisor) proceedGroup(g *group) {
	if g.stoppingOthers && s.stopNext(g) {
		g.stoppingOthers = false
	}
	if !g.stoppingOthers {
		s.startNext(g)
	}
}

// stopNext stops the last child that is alive. It returns true if there is no such child
// and no delay is left.
func (s *Supervisor) stopNext(g *group) bool {
	for i := len(g.children) - 1; i >= g.first; i-- {
		switch c := g.children[i]; {
		case c.state == stopping:
			return false
		case c.state.alive() && !c.inputsDone: // a child that could not be started again is not stopped: it ends on its own
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

// startNext starts the first child that is down, unless a child is being started.
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
