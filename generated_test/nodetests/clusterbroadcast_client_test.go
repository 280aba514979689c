package nodetests_test

import (
	"errors"
	"testing"

	"github.com/topogen/topogen/generated_test/clusterbroadcast"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/pool"
)

// TestClusterBroadcastClient sends from a client to the instances of all nodes. Each gets each message once
// and in order. An edge that stays on its node has no way from a client.
func TestClusterBroadcastClient(t *testing.T) {
	speed.Landing(t) // TestClusterGatherClient is the quick test with a client
	t.Parallel()
	nodes := clustertest.RunLoopback(t, 3, func(node int, opts ...pool.Option) (*clusterbroadcast.Topology, error) {
		return clusterbroadcast.New(broadcastProcessors(node), opts...)
	}, func(nodes []*clusterbroadcast.Topology, addresses []string) {
		defer func() {
			for _, top := range nodes {
				top.Api().Close()
			}
		}()
		c, err := clusterbroadcast.NewClient(cluster.ClientConfig{Addresses: addresses})
		if err != nil {
			t.Error(err)
			return
		}
		for i := range broadcastOutside {
			if err := c.Api().SendWord(t.Context(), clusterbroadcast.Word{Stamp: clusterbroadcast.Stamp{By: "client", N: i}, Text: []byte("word")}); err != nil {
				t.Error(err)
			}
			if err := c.Api().SendNear(t.Context(), clusterbroadcast.Near{N: i}); !errors.Is(err, pool.ErrStays) {
				t.Errorf("Near: %v", err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for i, f := range c.Snapshot().Edges {
			if f.Sent != f.Received || f.Dropped != 0 {
				t.Errorf("%v: %+v", clusterbroadcast.EdgeIndex(i), f)
			}
		}
	})
	for i, top := range nodes {
		for j := range 2 {
			if w := top.Wide(j); w.Next["Word of client"] != broadcastOutside || len(w.Faults) > 0 {
				t.Errorf("instance %d of wide on node %d: %v %v", j, i, w.Next, w.Faults)
			}
		}
	}
}
