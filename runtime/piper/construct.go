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
	Cell    Cell
	Unit    *Unit
	Out     *Out // of its sender
	Missing bool // its constructor returned nil
}

// make calls the function of the generated code that makes an instance, and its value if value
// is set.
func (s *Processor) make(in topo.Instance, value bool) (parts Parts, err error) {
	err = constructing(in, func() (missing bool, err error) {
		parts, err = s.Instance(in, value)
		return parts.Missing, err
	})
	return parts, err
}

// Construct makes a value of the instance in with the function how: a replacement after a
// failure, or the value in a process of its own. If how is nil, it returns zero. P is a pointer
// type. It is not constrained to comparable types: the compiler shares code between pointer
// types only if the constraint lists nothing but methods.
func Construct[P any](in topo.Instance, zero P, how func(topo.Instance) (P, error)) (made P, err error) {
	if how == nil {
		return zero, nil
	}
	var none P
	err = constructing(in, func() (missing bool, err error) {
		made, err = how(in)
		return any(made) == any(none), err
	})
	return made, err
}

// constructing calls how, which makes an instance and reports whether the constructor returned
// nil. It returns an error that names the instance if how returned an error, panicked, or made
// nothing.
func constructing(in topo.Instance, how func() (missing bool, err error)) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w\n%s", constructError(in, chain.OfPanic(cause)), debug.Stack())
		}
	}()
	missing, err := how()
	if err == nil && missing {
		err = errors.New("the constructor returned neither an instance nor an error")
	}
	if err != nil {
		return constructError(in, err)
	}
	return nil
}

func constructError(in topo.Instance, err error) error {
	return fmt.Errorf("constructing processor %q, instance %d: %w", in.Processor, in.Index, err)
}
