package nodetests_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/clustergather"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/internal/test/speed"
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

// TestClusterGatherClientsWhoseNodeLeaves asks from several clients. Then a node leaves that had joined.
// All instances of the others answer all clients, as soon as these know it.
func TestClusterGatherClientsWhoseNodeLeaves(t *testing.T) {
	speed.Landing(t) // TestBroadcastsOfAClientWhenANodeLeaves of runtime/cluster is the quick test
	t.Parallel()
	a := asking{nodes: 3, release: make(chan struct{})}
	open := func(node int, opts ...pool.Option) (*clustergather.Topology, error) {
		return clustergather.New(gatherProcessors(nodeName(node), a.release), opts...)
	}
	clustertest.RunLoopback(t, a.nodes, open, func(nodes []*clustergather.Topology, addresses []string) {
		defer func() {
			for _, top := range nodes {
				top.Api().Close()
			}
		}()
		joins, err := clustertest.MakeLoopback(t, addresses, a.nodes, open)
		if err != nil {
			t.Error(err)
			return
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- joins.Run(ctx) }()
		await := func(what string, condition func() bool) {
			poll := time.NewTicker(time.Millisecond)
			defer poll.Stop()
			for end := time.Now().Add(awaitMax); !condition(); <-poll.C {
				if time.Now().After(end) {
					t.Errorf("timeout while waiting for %s", what)
					return
				}
			}
		}
		isMember := func(v *cluster.View) bool {
			for _, n := range v.Nodes {
				if n.Name == nodeName(a.nodes) {
					return n.State == "member"
				}
			}
			return false
		}
		await("the node that joins", func() bool { return isMember(nodes[0].Cluster()) })
		var clients []*clustergather.Client
		for range 12 {
			c, err := clustergather.NewClient(cluster.ClientConfig{Addresses: addresses, Retry: time.Second})
			if err != nil {
				t.Error(err)
				return
			}
			clients = append(clients, c)
		}
		everyone := func(c *clustergather.Client, nodes int) {
			got, err := c.Api().AskCountToProbe(t.Context(), clustergather.Count{N: 1, Text: []byte("text")})
			slices.Sort(got.By)
			b := asking{nodes: nodes}
			want := b.everywhere("probe", 2, nodeName(0))
			slices.Sort(want)
			expect(t, got, err, 1, want, "")
		}
		for _, c := range clients {
			everyone(c, a.nodes+1)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, c := range clients {
			await("the news", func() bool { return !isMember(c.Cluster()) })
			everyone(c, a.nodes)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
