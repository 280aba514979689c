package durableids

import (
	"testing"

	"github.com/topogen/topogen/runtime/durable/edges"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

func newTopology(t *testing.T, w *World, opts ...pool.Option) *Topology {
	t.Helper()
	topology, err := New(Processors{
		Rolls: func(topo.Instance) (*Rolls, error) { return &Rolls{w}, nil },
		Parts: func(topo.Instance) (*Parts, error) { return &Parts{w}, nil },
	}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// TestIDsOfVersions rolls out a version whose number is that of a child of another one.
func TestIDsOfVersions(t *testing.T) {
	w, store := new(World), edges.NewMemory()
	topology := newTopology(t, w, pool.DurableMemory(store))
	topology.Stepper(1)
	for _, version := range []string{"1.2", "1.2.1", "1.2.2", "1", "1.1", "1.2.2.1"} {
		result, err := topology.Api().AskRoll(t.Context(), Roll{Version: version, Children: 1})
		if want := "roll " + version + ", part " + version; err != nil || result.Text != want {
			t.Errorf("version %s: %q, %v, want %q", version, result.Text, err, want)
		}
		if n := w.Runs["roll "+version]; n != 1 {
			t.Errorf("version %s was rolled out %d times", version, n)
		}
	}
}
