package processtests_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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

// TestReceiversThatDoNotExist sends messages along two edges. One edge has no instance
// with the id of a message. The rule is the same for sources, handlers and callers, in this process and
// in child processes: the other receiver gets the message, the copy for the missing instance
// counts as dropped, and a send method with an error result returns topo.ErrNoInstance.
func TestReceiversThatDoNotExist(t *testing.T) {
	top := newReceivers(t, "0 9 1", nil)
	api := top.Api()
	for _, to := range []int{0, 9, 1} {
		order := receivers.Order{To: to}
		if err := errors.Join(api.SendOrderToNear(t.Context(), order), api.SendOrderToFar(t.Context(), order), api.SendOrderToStrict(t.Context(), order)); err != nil {
			t.Fatal(err)
		}
		err := api.SendItem(t.Context(), receivers.Item{From: "api", To: to})
		if errors.Is(err, topo.ErrNoInstance) != (to == 9) || err != nil && to != 9 {
			t.Errorf("to %d: %v", to, err)
		}
	}
	api.Close()
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	missing := topo.ErrNoInstance.Error()
	for from, edges := range map[string]struct {
		gate, shard receivers.EdgeIndex
		outcomes    []string
	}{
		"near-source": {receivers.EdgeNearSourceGateItem, receivers.EdgeNearSourceShardItem, []string{"", missing, ""}},
		"far-source":  {receivers.EdgeFarSourceGateItem, receivers.EdgeFarSourceShardItem, []string{"", missing, ""}},
		"near":        {receivers.EdgeNearGateItem, receivers.EdgeNearShardItem, nil},
		"far":         {receivers.EdgeFarGateItem, receivers.EdgeFarShardItem, nil},
		"strict":      {receivers.EdgeStrictGateItem, receivers.EdgeStrictShardItem, []string{"", missing, ""}},
		"api":         {receivers.EdgeApiGateItem, receivers.EdgeApiShardItem, nil},
	} {
		if gate, shards := top.Gate(0).Items[from], inShards(top, from); gate != 3 || shards != 2 {
			t.Errorf("%s: the gate got %d items, want 3; the shards got %d, want 2", from, gate, shards)
		}
		for edge, want := range map[receivers.EdgeIndex][3]uint64{edges.gate: {3, 3, 0}, edges.shard: {3, 2, 1}} {
			if f := top.Snapshot().Edges[edge]; [3]uint64{f.Sent, f.Received, f.Dropped} != want {
				t.Errorf("%v: sent, received and dropped are %d, %d and %d, want %d", edge, f.Sent, f.Received, f.Dropped, want)
			}
		}
		var outcomes []string
		for _, o := range top.Gate(0).Outcomes {
			if o.From == from {
				outcomes = append(outcomes, o.Err)
			}
		}
		if !slices.Equal(outcomes, edges.outcomes) {
			t.Errorf("%s: the sends returned %q, want %q", from, outcomes, edges.outcomes)
		}
	}
}
