package nodetests_test

import (
	"slices"
	"testing"

	"github.com/topogen/topogen/generated_test/clustergather"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/pool"
)

// TestClusterGatherClient asks from a client. All instances answer, but one of them too late.
func TestClusterGatherClient(t *testing.T) {
	t.Parallel()
	a := asking{nodes: 3, release: make(chan struct{})}
	clustertest.RunLoopback(t, 3, func(node int, opts ...pool.Option) (*clustergather.Topology, error) {
		return clustergather.New(gatherProcessors(nodeName(node), a.release), opts...)
	}, func(nodes []*clustergather.Topology, addresses []string) {
		defer func() {
			for _, top := range nodes {
				top.Api().Close()
			}
		}()
		c, err := clustergather.NewClient(cluster.ClientConfig{Addresses: addresses})
		if err != nil {
			t.Error(err)
			return
		}
		for n := range gatherAsks {
			a.counters(t, c.Api(), n+1)
			got, err := c.Api().AskCountToProbe(t.Context(), clustergather.Count{N: n + 1, Fails: "", Text: []byte("text")})
			slices.Sort(got.By) // the node whose instances come first is not known
			want := a.everywhere("probe", 2, nodeName(0))
			slices.Sort(want)
			expect(t, got, err, n+1, want, "")
		}
		a.late(t, c.Api(), nodeName(0))
		if err := c.Close(); err != nil { // it does not wait for the instance that does not answer
			t.Error(err)
		}
		if e := c.Snapshot().Edges[clustergather.EdgeApiWideWait]; e.Sent != e.Received+e.Dropped || e.Dropped == 0 {
			t.Errorf("%+v", e)
		}
		close(a.release)
	})
}
