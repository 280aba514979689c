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
	near.Messages = b.N
	b.Setenv("TOPOGEN_DIR", b.TempDir())
	t, err := near.New(near.Processors{}, quiet(), pool.Workers(1), pool.Node("n1"), pool.NodeAddress("127.0.0.1:0"))
	if err != nil {
		b.Fatal(err)
	}
	if err := t.Run(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(near.Took.Nanoseconds())/float64(b.N), "ns/op")
}

// BenchmarkSameNode_section sends in a process that is no node, although the topology has a
// cluster.
func BenchmarkSameNode_section(b *testing.B) {
	near.Messages = b.N
	t, err := near.New(near.Processors{}, quiet(), pool.Workers(1))
	if err != nil {
		b.Fatal(err)
	}
	if err := t.Run(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(near.Took.Nanoseconds())/float64(b.N), "ns/op")
}

// BenchmarkSameNode_alone sends without a cluster.
func BenchmarkSameNode_alone(b *testing.B) {
	alone.Messages = b.N
	t, err := alone.New(alone.Processors{}, quiet(), pool.Workers(1))
	if err != nil {
		b.Fatal(err)
	}
	if err := t.Run(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(alone.Took.Nanoseconds())/float64(b.N), "ns/op")
}
