package nodetests_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/clusterreplies"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/pool"
)

// TestClusterRepliesClientGivesUp cuts a client off, whose caller then gives up. Close does not wait for
// the node, because no caller waits for the reply.
func TestClusterRepliesClientGivesUp(t *testing.T) {
	t.Parallel()
	clustertest.RunLoopback(t, 3, func(_ int, opts ...pool.Option) (*clusterreplies.Topology, error) {
		return clusterreplies.New(clusterreplies.Processors{}, opts...)
	}, func(nodes []*clusterreplies.Topology, addresses []string) {
		defer func() {
			for _, top := range nodes {
				top.Api().Close()
			}
		}()
		w := newWay()
		c, err := clusterreplies.NewClient(cluster.ClientConfig{Addresses: addresses, Dial: w.dial})
		if err != nil {
			t.Error(err)
			return
		}
		query := clusterreplies.Query{ID: "q"}
		if _, err := c.Api().AskQueryToDesk(t.Context(), query); err != nil {
			t.Error(err)
		}
		for _, address := range addresses {
			w.set(address, true)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := c.Api().AskQueryToDesk(ctx, query); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the call ends with %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if e := c.Snapshot().Edges[clusterreplies.EdgeApiDeskQuery]; e.Sent != 2 || e.Dropped == 0 || e.Len != 0 {
			t.Errorf("%+v", e)
		}
	})
}
