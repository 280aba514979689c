package graph

import "time"

// Source provides the figures of a topology. The pool of the topology implements it.
type Source interface {
	EdgeLen(edge int) int
	EdgeSent(edge int) uint64
	EdgeReceived(edge int) uint64
	EdgeDropped(edge int) uint64
	WorkerOf(processor, instance int) int
	BusyOf(processor int) time.Duration
	Deliver(edge int) (bool, error)
	Ping(processor int) error
}

// Processor describes a processor. Instances is 0 for an external one.
type Processor struct {
	Name      string
	Instances int
}

// Edge describes an edge. From is -1 for a timer.
type Edge struct {
	From, To int
	Message  string
}

// Graph is a topology by index. P and E are the generated index types, so the
// compiler rejects an index of another topology. Indices count from 0 in the order
// of the topology file. An index out of range panics, as it does in a slice.
type Graph[P, E ~int] struct {
	processors []Processor
	edges      []Edge
	source     Source
	incoming   [][]E
	outgoing   [][]E
	byName     map[string]P
}

// New returns the graph of the given processors and edges.
func New[P, E ~int](processors []Processor, edges []Edge, source Source) *Graph[P, E] {
	g := &Graph[P, E]{
		processors: processors, edges: edges, source: source,
		incoming: make([][]E, len(processors)), outgoing: make([][]E, len(processors)),
		byName: make(map[string]P, len(processors)),
	}
	for i, p := range processors {
		g.byName[p.Name] = P(i)
	}
	for i, e := range edges {
		g.incoming[e.To] = append(g.incoming[e.To], E(i))
		if e.From >= 0 {
			g.outgoing[e.From] = append(g.outgoing[e.From], E(i))
		}
	}
	return g
}

// ProcessorsCount is the number of processors, including external ones.
func (g *Graph[P, E]) ProcessorsCount() int { return len(g.processors) }

// EdgesCount is the number of edges, including timers.
func (g *Graph[P, E]) EdgesCount() int { return len(g.edges) }

// Processor returns the processor with index p.
func (g *Graph[P, E]) Processor(p P) ProcessorProxy {
	return ProcessorProxy{g.source, &g.processors[p], int(p)}
}

// Edge returns the edge with index e.
func (g *Graph[P, E]) Edge(e E) EdgeProxy[P] {
	return EdgeProxy[P]{g.source, &g.edges[e], int(e)}
}

// ProcessorIndex returns the index of the processor with the given name.
func (g *Graph[P, E]) ProcessorIndex(name string) (P, bool) {
	p, ok := g.byName[name]
	return p, ok
}

// IncomingEdges returns the edges to p, including timers, in ascending order.
func (g *Graph[P, E]) IncomingEdges(p P) []E { return append([]E(nil), g.incoming[p]...) }

// OutgoingEdges returns the edges from p in ascending order.
func (g *Graph[P, E]) OutgoingEdges(p P) []E { return append([]E(nil), g.outgoing[p]...) }

// ConnectingEdges returns the edges from a to b in ascending order.
func (g *Graph[P, E]) ConnectingEdges(a, b P) []E {
	var edges []E
	for _, e := range g.outgoing[a] {
		if g.edges[e].To == int(b) {
			edges = append(edges, e)
		}
	}
	return edges
}
