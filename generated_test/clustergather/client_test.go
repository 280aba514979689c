package clustergather

import (
	"slices"
	"testing"

	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/pool"
)

// TestClient asks from a client. All instances answer.
func TestClient(t *testing.T) {
	a := asking{nodes: 3, release: make(chan struct{})}
	clustertest.RunCluster(t, 3, func(node int, opts ...pool.Option) (*Topology, error) {
		return New(processors(name(node), a.release), opts...)
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
		for n := range asks {
			a.counters(t, c.Api(), n+1)
			got, err := c.Api().AskCountToProbe(t.Context(), Count{n + 1, "", []byte("text")})
			slices.Sort(got.By) // the node whose instances come first is not known
			want := a.everywhere("probe", 2, name(0))
			slices.Sort(want)
			expect(t, got, err, n+1, want, "")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
