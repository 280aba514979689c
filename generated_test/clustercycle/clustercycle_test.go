package clustercycle

import (
	"fmt"
	"maps"
	"testing"

	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/pool"
)

func place(processor, instance int) int {
	if ProcessorIndex(processor) == ProcessorSink {
		return 2
	}
	return instance
}

// TestNodes runs the cycle on several nodes. Each ball and each echo must come to its end
// before Finish is called on any node.
func TestNodes(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d nodes, %d workers", n, workers), func(t *testing.T) { run(t, n, pool.Workers(workers)) })
		}
	}
}

func run(t *testing.T, n int, workers pool.Option) {
	make := func(_ int, opts ...pool.Option) (*Topology, error) {
		return New(Processors{}, append(opts, workers)...)
	}
	check(t, clustertest.Run(t, n, place, make, nil))
}

// TestCluster runs the cycle on nodes of package cluster.
func TestCluster(t *testing.T) {
	make := func(_ int, opts ...pool.Option) (*Topology, error) { return New(Processors{}, opts...) }
	check(t, clustertest.RunCluster(t, 3, make, func([]*Topology) {}))
}

func check(t *testing.T, nodes []*Topology) {
	t.Helper()
	const passed = 2 * balls * (hops + 1)
	sinks := 0
	for _, top := range nodes {
		s := top.Sink(0)
		if s == nil {
			continue
		}
		sinks++
		if want := map[string]int{"balls": passed, "echoes": passed, "mirrored": passed}; !maps.Equal(s.Sums, want) || s.Count != 2*size+3 {
			t.Errorf("%d totals: %v, want %v", s.Count, s.Sums, want)
		}
	}
	if sinks != 1 {
		t.Errorf("%d nodes run the sink, want 1", sinks)
	}
	for e, want := range map[EdgeIndex]uint64{EdgeSourceRingBall: 2 * balls, EdgeRingRingBall: 2 * balls * hops, EdgeRingMirrorEcho: passed, EdgeMirrorRingEcho: passed, EdgeRingSinkTotal: 2 * size} {
		if f := clustertest.Figures(nodes, int(e)); f.Sent != want || f.Received != want {
			t.Errorf("%v: %+v, want %d", e, f, want)
		}
	}
}

// TestOneProcess runs the topology without the name of a node.
func TestOneProcess(t *testing.T) {
	top, err := New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if top.Sink(0).Sums["balls"] != 2*balls*(hops+1) {
		t.Errorf("%v", top.Sink(0).Sums)
	}
	if top.Cluster() != nil {
		t.Error("there is a view without a cluster")
	}
}
