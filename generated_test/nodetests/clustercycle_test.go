package nodetests_test

import (
	"maps"
	"testing"

	"github.com/topogen/topogen/generated_test/clustercycle"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/pool"
)

func cyclePlace(processor, instance int) int {
	if clustercycle.ProcessorIndex(processor) == clustercycle.ProcessorSink {
		return 2
	}
	return instance
}

// TestClusterCycleNodes runs the cycle on several nodes. Each ball and each echo must come to its end
// before Finish is called on any node.
func TestClusterCycleNodes(t *testing.T) {
	t.Parallel()
	clustertest.Each(t, cycleRun)
}

func cycleRun(t *testing.T, n int, workers pool.Option) {
	make := func(_ int, opts ...pool.Option) (*clustercycle.Topology, error) {
		return clustercycle.New(clustercycle.Processors{}, append(opts, workers)...)
	}
	cycleCheck(t, clustertest.Run(t, n, cyclePlace, make, nil))
}

// TestClusterCycleCluster runs the cycle on nodes of package cluster.
func TestClusterCycleCluster(t *testing.T) {
	t.Parallel()
	clustertest.Bubble(t, func(t *testing.T) {
		make := func(_ int, opts ...pool.Option) (*clustercycle.Topology, error) {
			return clustercycle.New(clustercycle.Processors{}, opts...)
		}
		cycleCheck(t, clustertest.RunCluster(t, 3, make, func([]*clustercycle.Topology) {}))
	})
}

func cycleCheck(t *testing.T, nodes []*clustercycle.Topology) {
	t.Helper()
	const passed = 2 * clustercycle.Balls * (clustercycle.Hops + 1)
	sinks := 0
	for _, top := range nodes {
		s := top.Sink(0)
		if s == nil {
			continue
		}
		sinks++
		if want := map[string]int{"balls": passed, "echoes": passed, "mirrored": passed}; !maps.Equal(s.Sums, want) || s.Count != 2*clustercycle.Size+3 {
			t.Errorf("%d totals: %v, want %v", s.Count, s.Sums, want)
		}
	}
	if sinks != 1 {
		t.Errorf("%d nodes run the sink, want 1", sinks)
	}
	for e, want := range map[clustercycle.EdgeIndex]uint64{clustercycle.EdgeSourceRingBall: 2 * clustercycle.Balls, clustercycle.EdgeRingRingBall: 2 * clustercycle.Balls * clustercycle.Hops, clustercycle.EdgeRingMirrorEcho: passed, clustercycle.EdgeMirrorRingEcho: passed, clustercycle.EdgeRingSinkTotal: 2 * clustercycle.Size} {
		if f := clustertest.Figures(nodes, int(e)); f.Sent != want || f.Received != want {
			t.Errorf("%v: %+v, want %d", e, f, want)
		}
	}
}

// TestClusterCycleOneProcess runs the topology without the name of a node.
func TestClusterCycleOneProcess(t *testing.T) {
	top, err := clustercycle.New(clustercycle.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if top.Sink(0).Sums["balls"] != 2*clustercycle.Balls*(clustercycle.Hops+1) {
		t.Errorf("%v", top.Sink(0).Sums)
	}
	if top.Cluster() != nil {
		t.Error("there is a view without a cluster")
	}
}
