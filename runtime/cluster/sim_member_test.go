package cluster

import (
	"math/rand/v2"
	"time"

	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/transport"
)

// simDetector is the failure detection of a node of a simulation: the core of package
// member on the network of the simulation.
type simDetector struct {
	node  *simNode
	core  *member.Core
	inbox []frame // that have arrived while the node was paused
}

// startDetector starts the failure detection of a node, if the simulation has one.
func (n *simNode) startDetector() error {
	s := n.sim
	if s.profile == "" {
		return nil
	}
	me := member.Node{Name: n.name, Address: s.config.Nodes[n.name], Boot: uint64(n.boot)>>2 + 1}
	core, err := member.NewCore(me, s.config.Nodes, member.Config{Profile: s.profile, Fence: member.FenceOff}, rand.New(rand.NewPCG(s.seed, uint64(200+n.index))))
	if err == nil {
		n.detector = &simDetector{node: n, core: core}
		n.detector.effects()
	}
	return err
}

func (d *simDetector) now() time.Duration { return d.node.sim.now - d.node.began }

// due reports whether the core has something to do.
func (d *simDetector) due() bool { return len(d.inbox) > 0 || d.core.Next() <= d.now() }

// next returns when the core has something to do.
func (d *simDetector) next() time.Duration {
	if len(d.inbox) > 0 {
		return d.node.sim.now
	}
	at := d.core.Next()
	return at + min(d.node.began, 1<<63-1-at)
}

func (d *simDetector) run() {
	for _, f := range d.inbox {
		if err := d.core.Step(d.now(), f.from, f.data); err != nil {
			d.node.sim.fault("%s: %v", d.node.name, err)
		}
	}
	d.inbox = nil
	if d.core.Next() <= d.now() {
		d.core.Tick(d.now())
	}
	d.effects()
}

// effects does what Node.observe and the driver of package member do.
func (d *simDetector) effects() {
	s := d.node.sim
	messages, events := d.core.Take()
	for _, m := range messages {
		for _, other := range s.nodes {
			if other.name == m.To {
				s.net.SendAs(int64(s.now), d.node.index, other.index, transport.Urgent, packet{data: m.Payload, member: true})
			}
		}
	}
	for _, e := range events {
		switch e.Kind {
		case member.EventJoined, member.EventAlive:
			s.trace.note(s.now, d.node.name+": "+e.Member.Name+" is alive")
			d.node.post(func(h *happened) { h.alive = append(h.alive, alive{node: e.Member.Name, alive: true}) })
		case member.EventDead, member.EventLeft:
			s.counts["nodes "+e.Kind.String()]++
			s.trace.note(s.now, d.node.name+": "+e.Member.Name+" is "+e.Kind.String())
			d.node.post(func(h *happened) {
				h.alive = append(h.alive, alive{node: e.Member.Name, left: e.Kind == member.EventLeft})
			})
		}
	}
}
