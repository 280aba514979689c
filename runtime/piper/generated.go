package piper

import "github.com/topogen/topogen/runtime/graph"

// Generated10 is the version of the interface between generated code and this
// package. Generated code refers to the constant. If the runtime in go.mod has
// another version, the build stops with one compile error, next to a comment with
// the command to run, instead of with many errors.
const Generated10 = 10

// GraphOf returns the graph of the topology that p runs. P and E are the generated
// index types. It must be called after all instances were adopted.
func GraphOf[P, E ~int](p *Pool) *graph.Graph[P, E] {
	processors := make([]graph.Processor, len(p.processors))
	for i, proc := range p.processors {
		processors[i] = graph.Processor{Name: proc.Name, Instances: proc.instances()}
	}
	edges := make([]graph.Edge, len(p.edges))
	for i := range p.edges {
		edges[i] = graph.Edge{From: p.edges[i].From, To: p.edges[i].To, Message: p.edges[i].Message}
	}
	return graph.New[P, E](processors, edges, &p.figures)
}
