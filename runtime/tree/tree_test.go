package tree

import (
	"testing"

	"github.com/topogen/topogen/runtime/graph"
)

// The names of this package are the types of package graph, so values can be
// assigned in both directions.
var (
	_ func(*graph.Graph[int, int]) = func(*Tree[int, int]) {}
	_ func(graph.EdgeProxy[int])   = func(EdgeProxy[int]) {}
	_ func(graph.ProcessorProxy)   = func(ProcessorProxy) {}
	_ func(graph.Source)           = func(Source) {}
)

// TestNew checks that New returns the graph that graph.New returns.
func TestNew(t *testing.T) {
	var g *graph.Graph[int, int] = New[int, int]([]Node{{Name: "a"}, {Name: "b"}}, []Arc{{From: 0, To: 1, Message: "M"}}, nil)
	if e := g.Edge(0); e.From() != 0 || e.To() != 1 || e.Message() != "M" {
		t.Errorf("edge 0 is %d -> %d: %s, want 0 -> 1: M", e.From(), e.To(), e.Message())
	}
}
