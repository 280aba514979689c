package piper

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/topo"
)

// Parts are what the pool needs of an instance.
type Parts struct {
	Cell Cell
	Unit *Unit
	Out  *Out // of its sender
}

// construct makes the instances of all processors, in order. In a cluster, the values of the
// processors' types are made later, by the node that runs them.
func (p *Pool) construct() error {
	for i := range p.spec.Processors {
		s := &p.spec.Processors[i]
		n := s.Instances
		if s.Others && p.border == nil {
			n--
		}
		here := p.border == nil
		for j := range n {
			parts, err := s.Instance(topo.Instance{Processor: s.Name, Index: j, Number: n}, here)
			if err != nil {
				return err
			}
			if p.Adopt(i, parts.Cell, parts.Unit, parts.Out); here {
				cell{parts.Cell}.Adopted()
			}
		}
	}
	return nil
}

// Make makes the value of an instance with Construct. It returns the parts of the instance.
func Make[P comparable](in topo.Instance, parts Parts, value *P, zero P, how func(topo.Instance) (P, error)) (Parts, error) {
	made, err := Construct(in, zero, how)
	*value = made
	return parts, err
}

// Construct makes the instance that in describes, with the function how. Without how the
// instance is zero. An error or a panic of how becomes an error that names the instance. P is
// a pointer type.
func Construct[P comparable](in topo.Instance, zero P, how func(topo.Instance) (P, error)) (made P, err error) {
	if how == nil {
		return zero, nil
	}
	var none P
	defer func() {
		if cause := recover(); cause != nil {
			err = constructError(in, chain.OfPanic(cause))
			err = fmt.Errorf("%w\n%s", err, debug.Stack())
		}
	}()
	made, err = how(in)
	if err == nil && made == none {
		err = errors.New("the constructor returned neither an instance nor an error")
	}
	if err != nil {
		return none, constructError(in, err)
	}
	return made, nil
}

func constructError(in topo.Instance, err error) error {
	return fmt.Errorf("constructing processor %q, instance %d: %w", in.Processor, in.Index, err)
}
