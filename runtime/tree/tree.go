// Package tree holds the former names of package graph.
//
// Deprecated: use package graph.
package tree

import "github.com/topogen/topogen/runtime/graph"

// Tree is a topology by index.
//
// Deprecated: use graph.Graph.
type Tree[P, E ~int] = graph.Graph[P, E]

// EdgeProxy reads the figures of one edge.
//
// Deprecated: use graph.EdgeProxy.
type EdgeProxy[P ~int] = graph.EdgeProxy[P]

// ProcessorProxy reads the figures of one processor.
//
// Deprecated: use graph.ProcessorProxy.
type ProcessorProxy = graph.ProcessorProxy

// Source provides the figures of a topology.
//
// Deprecated: use graph.Source.
type Source = graph.Source

// Node describes a processor.
//
// Deprecated: use graph.Processor.
type Node = graph.Processor

// Arc describes an edge.
//
// Deprecated: use graph.Edge.
type Arc = graph.Edge

// New returns the graph of the given processors and edges.
//
// Deprecated: use graph.New.
func New[P, E ~int](processors []Node, edges []Arc, source Source) *Tree[P, E] {
	return graph.New[P, E](processors, edges, source)
}
