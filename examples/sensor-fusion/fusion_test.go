package main

import (
	"io"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// stepped is the whole in virtual time, gps in its process included: a call of it is
// one step. Lidar hangs as far as the topology can tell.
func stepped(t *testing.T, change func(*Processors)) (*Topology, *pool.Stepper) {
	t.Helper()
	var stepper *pool.Stepper
	processors := Processors{
		Lidar: func(topo.Instance) (*Lidar, error) {
			l := NewLidar(SensorConfig{Seed: 2, Noise: 0.1, FailsAfter: 75})
			l.hang = func() { stepper.Hang() }
			return l, nil
		},
	}
	if change != nil {
		change(&processors)
	}
	topology, err := New(processors)
	if err != nil {
		t.Fatal(err)
	}
	stepper = topology.Stepper(1)
	return topology, stepper
}

func TestTheWhole(t *testing.T) {
	topology, stepper := stepped(t, nil)
	if err := stepper.Advance(12 * time.Second); err != nil {
		t.Fatal(err)
	}
	stepper.Stop()
	if err := stepper.Run(); err != nil {
		t.Fatal(err)
	}
	summarize(io.Discard, topology)
}
