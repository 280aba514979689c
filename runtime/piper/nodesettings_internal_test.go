package piper

import (
	"errors"
	"testing"

	"github.com/topogen/topogen/runtime/queue"
)

// TestSettingsOfEdgesBetweenNodes sets each setting of an edge that only matters in a cluster.
func TestSettingsOfEdgesBetweenNodes(t *testing.T) {
	p, err := New(Spec{
		Processors: []Processor{{Name: "api", External: true}, {Name: "to", Group: 1}},
		Edges:      []Edge{{From: 0, To: 1, Message: "M", Capacity: 5, Aimed: true, Stays: true, AtMostOnce: true}},
	}, Client(new(int)))
	if err != nil {
		t.Fatal(err)
	}
	if _, capacity := p.pairLimits(0, 1); capacity != 5 {
		t.Errorf("other nodes may send %d messages before one is handled, want 5", capacity)
	}
	if !p.aims(0, 1) {
		t.Error("messages go to all instances")
	}
	if err := p.External(0).stays(0); !errors.Is(err, ErrStays) {
		t.Errorf("a client sends the message: %v", err)
	}
	o, head := &Outlet{unit: &Unit{proc: p.processors[1]}}, new(queue.Head)
	head.Init(0, 5, nil)
	o.append("", nil, head, func(b []byte, _ int) ([]byte, error) { return b, nil })
	if !o.chunk.AtMostOnce {
		t.Error("messages are sent again after a lost connection")
	}
}
