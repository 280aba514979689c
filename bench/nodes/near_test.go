package nodes

import (
	"context"
	"testing"

	"github.com/topogen/topogen/bench/topologies/alone"
	"github.com/topogen/topogen/bench/topologies/near"
	"github.com/topogen/topogen/runtime/pool"
)

// BenchmarkSameNode_topogen sends between two instances on one node of a cluster.
func BenchmarkSameNode_topogen(b *testing.B) {
	b.Setenv("TOPOGEN_DIR", b.TempDir())
	benchmarkNear(b, pool.Node("n1"), pool.NodeAddress("127.0.0.1:0"))
}

// BenchmarkSameNode_section runs a topology with a cluster in a process without a node's name.
func BenchmarkSameNode_section(b *testing.B) { benchmarkNear(b) }

func benchmarkNear(b *testing.B, options ...pool.Option) {
	near.Messages, near.Began, near.Ended = b.N, make(chan struct{}), make(chan struct{})
	t, err := near.New(near.Processors{}, append(options, quiet(), pool.Workers(1))...)
	if err != nil {
		b.Fatal(err)
	}
	timeRun(b, t.Run, near.Began, near.Ended)
}

// BenchmarkSameNode_alone sends without a cluster.
func BenchmarkSameNode_alone(b *testing.B) {
	alone.Messages, alone.Began, alone.Ended = b.N, make(chan struct{}), make(chan struct{})
	t, err := alone.New(alone.Processors{}, quiet(), pool.Workers(1))
	if err != nil {
		b.Fatal(err)
	}
	timeRun(b, t.Run, alone.Began, alone.Ended)
}

// timeRun measures from the first message to the last one, without the start and the end of
// the topology.
func timeRun(b *testing.B, run func(context.Context) error, began, ended <-chan struct{}) {
	b.StopTimer()
	result := make(chan error, 1)
	go func() { result <- run(context.Background()) }()
	select {
	case <-began:
	case err := <-result:
		b.Fatal("the topology has ended early: ", err)
	}
	b.StartTimer()
	<-ended
	b.StopTimer()
	if err := <-result; err != nil {
		b.Fatal(err)
	}
}
