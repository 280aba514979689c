package pool

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/topo"
	"github.com/topogen/topogen/runtime/tree"
)

// Generated2 stands for all that generated code of the second form uses of the
// runtime. That code names it, so that a runtime which no longer fits is one
// compile error, beside the command to run, and not many.
const Generated2 = 2

// Construct makes the instance that in describes. An error names it, and so does
// one for a panic.
func Construct[T any](in topo.Instance, construct func(topo.Instance) (*T, error)) (p *T, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = constructError(in, chain.OfPanic(cause))
			err = fmt.Errorf("%w\n%s", err, debug.Stack())
		}
	}()
	p, err = construct(in)
	if err == nil && p == nil {
		err = errors.New("the constructor returned neither an instance nor an error")
	}
	if err != nil {
		return nil, constructError(in, err)
	}
	return p, nil
}

func constructError(in topo.Instance, err error) error {
	return fmt.Errorf("constructing processor %q, instance %d: %w", in.Processor, in.Index, err)
}

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

// Zero constructs an instance that needs nothing but its zero value.
func Zero[T any](topo.Instance) (*T, error) { return new(T), nil }
