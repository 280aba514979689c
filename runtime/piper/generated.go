package piper

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/topo"
	"github.com/topogen/topogen/runtime/tree"
)

// Generated4 stands for all that generated code of the fourth form uses of the
// runtime. That code names it, so that a runtime which no longer fits is one
// compile error, beside the command to run, and not many.
const Generated4 = 4

// Construct makes the instance that in describes: construct does, or where it is nil
// the instance is a zero value. An error names the instance, and so does one for a
// panic. P is a pointer: the compiler makes one function for all of them.
func Construct[P any](in topo.Instance, construct func(topo.Instance) (P, error)) (p P, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = constructError(in, chain.OfPanic(cause))
			err = fmt.Errorf("%w\n%s", err, debug.Stack())
		}
	}()
	if construct == nil {
		return reflect.New(reflect.TypeFor[P]().Elem()).Interface().(P), nil
	}
	var none P
	p, err = construct(in)
	if err == nil && any(p) == any(none) {
		err = errors.New("the constructor returned neither an instance nor an error")
	}
	if err != nil {
		return none, constructError(in, err)
	}
	return p, nil
}

func constructError(in topo.Instance, err error) error {
	return fmt.Errorf("constructing processor %q, instance %d: %w", in.Processor, in.Index, err)
}

// RecordSends returns what a sender does in the test of a handler, in place of sending:
// it appends the message to fields of recorder, a pointer to a struct with a slice
// for each of them. Names of fields have spaces between them.
func RecordSends(recorder any) func(m any, fields string) {
	to := reflect.ValueOf(recorder).Elem()
	return func(m any, fields string) {
		for field := range strings.FieldsSeq(fields) {
			list := to.FieldByName(field)
			v := reflect.ValueOf(m)
			if !v.IsValid() { // a message of an interface type that is nil
				v = reflect.Zero(list.Type().Elem())
			}
			list.Set(reflect.Append(list, v))
		}
	}
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
