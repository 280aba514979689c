package nodetests_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/clusterretries"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// retriesPlace puts the sources on other nodes than their first receivers.
func retriesPlace(processor, instance int) int {
	switch clusterretries.ProcessorIndex(processor) {
	case clusterretries.ProcessorApi, clusterretries.ProcessorMorgue:
		return clustertest.Everywhere
	case clusterretries.ProcessorSource:
		return instance + 1
	case clusterretries.ProcessorWatches:
		return 2
	}
	return instance
}

// queries is how many queries come from outside on each node, to each processor.
const queries = 30

func TestClusterRetriesNodes(t *testing.T) {
	clustertest.Each(t, retriesRun)
}

const sent, failing = 2 * clusterretries.Messages, 2 * (clusterretries.Messages / 3) // by all sources, along one edge

func retriesRun(t *testing.T, n int, workers pool.Option) {
	make := func(_ int, opts ...pool.Option) (*clusterretries.Topology, error) {
		return clusterretries.New(clusterretries.Processors{}, append(opts, workers)...)
	}
	nodes := clustertest.RunExpecting(t, n, retriesPlace, make, func(nodes []*clusterretries.Topology) {
		for i, top := range nodes {
			ask(t, fmt.Sprint("node", i), top.Api())
		}
	}, pool.ErrGaveUp)
	if f := clustertest.Figures(nodes, int(clusterretries.EdgeSourceGivesUpPlain)); f.Sent != 2*sent {
		t.Errorf("gives_up: %+v, want %d sent", f, 2*sent)
	}
	dropped := uint64(0) // counted on the node of the receiver, also for messages after the receiver was given up
	for _, top := range nodes {
		dropped += top.Snapshot().Processors[clusterretries.ProcessorGivesUp].Faults.Dropped
	}
	if dropped != 2*sent {
		t.Errorf("gives_up has dropped %d messages, want %d", dropped, 2*sent)
	}
	var retries, skips clusterretries.Log
	letters := map[string]int{}
	for _, top := range nodes {
		for i := range 3 {
			if r := top.Retries(i); r != nil {
				retries.Plain += r.Plain
				retries.Box += r.Box
				retries.Failed += r.Failed
			}
			if s := top.Skips(i); s != nil {
				skips.Plain += s.Plain
				skips.Box += s.Box
				skips.Failed += s.Failed
			}
		}
		if w := top.Watches(0); w != nil && w.Closed == 0 {
			t.Error("InputClosed was not called")
		}
		m := top.Morgue(0)
		for letter, count := range m.Letters {
			letters[letter] += count
		}
		if len(m.Wrong) > 0 {
			t.Errorf("dead letters: %v", m.Wrong)
		}
	}
	if want := (clusterretries.Log{Plain: sent - failing, Box: sent, Failed: 3 * failing}); retries != want {
		t.Errorf("retries: %+v, want %+v", retries, want)
	}
	if want := (clusterretries.Log{Plain: sent - failing, Box: sent, Failed: failing}); skips != want {
		t.Errorf("skips: %+v, want %+v", skips, want)
	}
	want := map[string]int{
		"retries Plain 3": failing, "skips Plain 1": failing, "stops Plain 2": failing,
		"retries Query 3": n * queries / 3, "stops Query 2": n * queries / 3,
	}
	if !maps.Equal(letters, want) {
		t.Errorf("dead letters: %v, want %v", letters, want)
	}
	for _, e := range []clusterretries.EdgeIndex{clusterretries.EdgeSourceRetriesPlain, clusterretries.EdgeSourceRetriesBox, clusterretries.EdgeSourceSkipsPlain, clusterretries.EdgeSourceStopsPlain, clusterretries.EdgeSourceWatchesPlain} {
		if f := clustertest.Figures(nodes, int(e)); f.Sent != sent {
			t.Errorf("%v: %+v, want %d sent", e, f, sent)
		}
	}
}

// ask asks both processors. Every third query gets no reply.
func ask(t *testing.T, by string, api *clusterretries.ApiSender) {
	for i := 1; i <= queries; i++ {
		got, err := api.AskQueryToRetries(t.Context(), clusterretries.Query{N: i, By: by})
		retriesCheck(t, i, got, clusterretries.Answer{N: i, Attempts: 3}, err)
		got, err = api.AskQueryToStops(t.Context(), clusterretries.Query{N: i, By: by})
		retriesCheck(t, i, got, clusterretries.Answer{N: i, Attempts: 1}, err)
	}
	api.Close()
}

func retriesCheck(t *testing.T, i int, got, want clusterretries.Answer, err error) {
	t.Helper()
	if i%3 == 0 {
		want = clusterretries.Answer{}
	}
	if got != want || errors.Is(err, topo.ErrFailed) != (i%3 == 0) || i%3 != 0 && err != nil {
		t.Errorf("query %d: %+v, %v; want %+v", i, got, err, want)
	}
}

// TestClusterRetriesOneProcess checks the same without nodes.
func TestClusterRetriesOneProcess(t *testing.T) {
	top, err := clusterretries.New(clusterretries.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	go ask(t, "outside", top.Api())
	if err := top.Run(t.Context()); !errors.Is(err, pool.ErrGaveUp) {
		t.Fatal(err)
	}
	if top.Watches(0).Closed == 0 {
		t.Error("InputClosed was not called")
	}
}

// TestClusterRetriesHangs lets the handler of the last message of each source hang. The nodes of
// the sources must learn that these messages are given up, or the topology does not end. The
// abandoned goroutines return while the next instance runs.
func TestClusterRetriesHangs(t *testing.T) {
	clustertest.Each(t, func(t *testing.T, n int, workers pool.Option) {
		clustertest.Bubble(t, func(t *testing.T) { hangingRun(t, n, workers) })
	})
}

func hangingRun(t *testing.T, n int, workers pool.Option) {
	watches := func(topo.Instance) (*clusterretries.Watches, error) {
		return &clusterretries.Watches{Hang: 30 * time.Second}, nil
	}
	make := func(_ int, opts ...pool.Option) (*clusterretries.Topology, error) {
		return clusterretries.New(clusterretries.Processors{Watches: watches}, append(opts, workers)...)
	}
	nodes := clustertest.RunExpecting(t, n, retriesPlace, make, func(nodes []*clusterretries.Topology) {
		for _, top := range nodes {
			top.Api().Close()
		}
	}, pool.ErrGaveUp)
	if f := clustertest.Figures(nodes, int(clusterretries.EdgeSourceWatchesPlain)); f.Sent != sent || f.Received != sent {
		t.Errorf("%+v, want %d received", f, sent)
	}
	abandoned := uint64(0)
	for _, top := range nodes {
		abandoned += top.Snapshot().Faults.Abandoned
	}
	if abandoned != 2 {
		t.Errorf("%d calls were abandoned, want 2", abandoned)
	}
}
