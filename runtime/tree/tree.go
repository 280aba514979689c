package tree

import "time"

// Source is what a tree reads from: the pool of a topology.
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

// Node describes a processor.
type Node struct {
	Name      string
	Instances int
}

// Arc describes an edge; From is -1 for a timer.
type Arc struct {
	From, To int
	Message  string
}

// Tree is a topology by index. P and E are the generated index types, so that
// the indices of two topologies do not mix. Indices are those of the file's
// order, from 0; a processor or edge outside the topology panics, as an index
// outside a slice does.
type Tree[P, E ~int] struct {
	nodes    []Node
	arcs     []Arc
	source   Source
	incoming [][]E
	outgoing [][]E
	byName   map[string]P
}

// New returns the tree of the given processors and edges.
func New[P, E ~int](nodes []Node, arcs []Arc, source Source) *Tree[P, E] {
	t := &Tree[P, E]{
		nodes: nodes, arcs: arcs, source: source,
		incoming: make([][]E, len(nodes)), outgoing: make([][]E, len(nodes)),
		byName: make(map[string]P, len(nodes)),
	}
	for i, n := range nodes {
		t.byName[n.Name] = P(i)
	}
	for i, a := range arcs {
		t.incoming[a.To] = append(t.incoming[a.To], E(i))
		if a.From >= 0 {
			t.outgoing[a.From] = append(t.outgoing[a.From], E(i))
		}
	}
	return t
}

// ProcessorsCount is the number of processors, external ones included.
func (t *Tree[P, E]) ProcessorsCount() int { return len(t.nodes) }

// EdgesCount is the number of edges, timers included.
func (t *Tree[P, E]) EdgesCount() int { return len(t.arcs) }

// Processor returns the processor with index p.
func (t *Tree[P, E]) Processor(p P) ProcessorProxy {
	return ProcessorProxy{t.source, &t.nodes[p], int(p)}
}

// Edge returns the edge with index e.
func (t *Tree[P, E]) Edge(e E) EdgeProxy[P] {
	return EdgeProxy[P]{t.source, &t.arcs[e], int(e)}
}

// ProcessorIndex returns the index of the processor with that name in the file.
func (t *Tree[P, E]) ProcessorIndex(name string) (P, bool) {
	p, ok := t.byName[name]
	return p, ok
}

// IncomingEdges returns the edges to p, timers included, in ascending order.
func (t *Tree[P, E]) IncomingEdges(p P) []E { return append([]E(nil), t.incoming[p]...) }

// OutgoingEdges returns the edges from p in ascending order.
func (t *Tree[P, E]) OutgoingEdges(p P) []E { return append([]E(nil), t.outgoing[p]...) }

// ConnectingEdges returns the edges from a to b in ascending order.
func (t *Tree[P, E]) ConnectingEdges(a, b P) []E {
	var edges []E
	for _, e := range t.outgoing[a] {
		if t.arcs[e].To == int(b) {
			edges = append(edges, e)
		}
	}
	return edges
}
