package piper

import "github.com/topogen/topogen/runtime/tree"

// Generated5 stands for all that generated code of the fifth form uses of the
// runtime. That code names it, so that a runtime which no longer fits is one
// compile error, beside the command to run, and not many.
const Generated5 = 5

// TreeOf shows the topology that p runs. P and E are its index types; all
// instances were adopted.
func TreeOf[P, E ~int](p *Pool) *tree.Tree[P, E] {
	nodes := make([]tree.Node, len(p.processors))
	for i, proc := range p.processors {
		nodes[i] = tree.Node{Name: proc.Name, Instances: len(proc.units)}
	}
	arcs := make([]tree.Arc, len(p.edges))
	for i := range p.edges {
		arcs[i] = tree.Arc{From: p.edges[i].From, To: p.edges[i].To, Message: p.edges[i].Message}
	}
	return tree.New[P, E](nodes, arcs, p)
}
