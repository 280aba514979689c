package clusternodes

import (
	"errors"
	"testing"

	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// TestClient asks each node from a client.
func TestClient(t *testing.T) {
	clustertest.RunCluster(t, 3, func(node int, opts ...pool.Option) (*Topology, error) {
		return New(processors(name(node)), opts...)
	}, func(nodes []*Topology) {
		defer func() {
			for _, top := range nodes {
				top.Api().Close()
			}
		}()
		c, err := NewClient(cluster.ClientConfig{})
		if err != nil {
			t.Error(err)
			return
		}
		for i := range outside {
			for node := range nodes {
				want := Seen{name(node), i}
				if got, err := c.Api().AskLook(t.Context(), Look{&Target{name(node)}, i}); err != nil || got != want {
					t.Errorf("%+v, %v; want %+v", got, err, want)
				}
			}
		}
		if _, err := c.Api().AskLook(t.Context(), Look{&Target{"nowhere"}, 0}); !errors.Is(err, topo.ErrNoInstance) {
			t.Errorf("a node that does not exist: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
