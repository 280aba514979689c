package processtests_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/topogen/topogen/generated_test/receivers"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

func newReceivers(t *testing.T, destinations string, enter func()) *receivers.Topology {
	t.Helper()
	t.Setenv(receivers.Variable, destinations)
	top, err := receivers.New(receivers.Processors{
		Gate: func(topo.Instance) (*receivers.Gate, error) { return &receivers.Gate{Enter: enter}, nil },
	}, pool.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// inShards is the number of items of a processor that both shards got.
func inShards(top *receivers.Topology, from string) int {
	return top.Shard(0).Items[from] + top.Shard(1).Items[from]
}

// TestReceiversOfServeGetAllOrNone stops a topology while sources wait in a send to several
// receivers. The items that one receiver got, all got, whether or not the source runs in
// a process.
func TestReceiversOfServeGetAllOrNone(t *testing.T) {
	entered, open := make(chan struct{}), make(chan struct{})
	enter := sync.OnceFunc(func() {
		close(entered)
		<-open
	})
	top := newReceivers(t, strings.Repeat("0 1 ", 100), enter)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- top.Run(ctx) }()
	<-entered
	await(t, "both sources wait for room at the gate", func() bool {
		s := top.Snapshot()
		return s.Edges[receivers.EdgeNearSourceGateItem].Len > 0 && s.Edges[receivers.EdgeFarSourceGateItem].Len > 0
	})
	stop()
	await(t, "the stop is in effect", func() bool {
		return errors.Is(top.Api().SendOrderToNear(t.Context(), receivers.Order{}), topo.ErrStopping)
	})
	close(open)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, from := range []string{"near-source", "far-source"} {
		if gate, shards := top.Gate(0).Items[from], inShards(top, from); gate == 0 || gate != shards {
			t.Errorf("%s: the gate got %d items, the shards got %d", from, gate, shards)
		}
	}
}
