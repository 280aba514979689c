package cluster

import (
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// ticks is the timer of a place.
type ticks struct {
	piper.Ticker
	to *place
}

// Adopted starts the timer of an instance.
func (x *place) Adopted() {
	t, of := x.self()
	edge := len(t.sim.design.edges)
	for i := range t.sim.design.parts {
		every := t.sim.design.parts[i].every > 0
		if i == of && every {
			tick := &ticks{to: x}
			tick.Start(tick, &x.unit, edge)
		}
		if every {
			edge++
		}
	}
}

// Drain sends a message if there is a tick.
func (t *ticks) Drain(int) (n int, err error) {
	if _, ok := t.Take(); !ok {
		return 0, nil
	}
	t.to.send(0)
	return 1, nil
}

// TestNodeWithTimersLeaves stops one node. A processor on it gets messages of another node,
// which goes on, and ticks at which it sends. The node must end although its timer does not
// close with its last input.
func TestNodeWithTimersLeaves(t *testing.T) {
	d := &design{nodes: 2, messages: 1 << 30, batch: 4, parts: []designPart{
		{name: "p0", instances: 1, source: true, placement: OnNode, node: "n2", with: 0},
		{name: "p1", instances: 1, placement: OnNode, node: "n1", with: 1, every: 5 * time.Millisecond},
		{name: "p2", instances: 1, placement: OnNode, node: "n2", with: 2},
	}, edges: []designEdge{{from: 0, to: 1, capacity: 16}, {from: 1, to: 2, capacity: 16}}}
	d.groups = d.components()
	s := simulate(1, d)
	s.turn = 5 * time.Millisecond
	s.config.Retry.Timeout = 10 * time.Second
	s.at(time.Second, "stop n1", func() { s.nodes[0].stop() })
	s.at(time.Second+3*leaveAfter, "check", func() {
		if n := s.nodes[0]; n.state == simRunning {
			t.Errorf("n1 has not ended:\n%s", n.describe())
		}
	})
	s.at(20*time.Second, "stop n2", func() { s.nodes[1].stop() })
	s.run()
	if f := s.failure(); f != "" {
		t.Error(f)
	}
}
