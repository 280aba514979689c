package nodetests_test

import (
	"errors"
	"testing"

	"github.com/topogen/topogen/generated_test/clusternodes"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// TestClusterNodesClient asks each node from a client.
func TestClusterNodesClient(t *testing.T) {
	speed.Landing(t) // TestClusterGatherClient is the quick test with a client
	t.Parallel()
	clustertest.RunLoopback(t, 3, func(node int, opts ...pool.Option) (*clusternodes.Topology, error) {
		return clusternodes.New(namedProcessors(nodeName(node)), opts...)
	}, func(nodes []*clusternodes.Topology, addresses []string) {
		defer func() {
			for _, top := range nodes {
				top.Api().Close()
			}
		}()
		c, err := clusternodes.NewClient(cluster.ClientConfig{Addresses: addresses})
		if err != nil {
			t.Error(err)
			return
		}
		for i := range namedOutside {
			for node := range nodes {
				want := clusternodes.Seen{Node: nodeName(node), N: i}
				if got, err := c.Api().AskLook(t.Context(), clusternodes.Look{At: &clusternodes.Target{Node: nodeName(node)}, N: i}); err != nil || got != want {
					t.Errorf("%+v, %v; want %+v", got, err, want)
				}
			}
		}
		if _, err := c.Api().AskLook(t.Context(), clusternodes.Look{At: &clusternodes.Target{Node: "nowhere"}, N: 0}); !errors.Is(err, topo.ErrNoInstance) {
			t.Errorf("a node that does not exist: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
