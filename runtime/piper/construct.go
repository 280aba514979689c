package piper

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"unsafe"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/topo"
)

// construct makes the instances of all processors, in order. It reads and sets fields of
// generated types by name: code for that in the types would be a function for each
// processor.
func (p *Pool) construct() error {
	for i := range p.spec.Processors {
		s := &p.spec.Processors[i]
		if s.Instances == nil {
			continue
		}
		instances := reflect.ValueOf(s.Instances).Elem()
		how := s.New
		if reflect.ValueOf(how).IsNil() { // a function of Processors, which has a type
			how = s.Default
		}
		for j := range instances.Len() {
			in := topo.Instance{Processor: s.Name, Index: j, Number: instances.Len()}
			if err := p.constructOne(i, in, instances.Index(j), how); err != nil {
				return err
			}
		}
	}
	return nil
}

// constructOne makes the instance whose struct is at.
func (p *Pool) constructOne(processor int, in topo.Instance, at reflect.Value, how any) error {
	x := at.Addr().Interface()
	if own, ok := x.(interface {
		Construct(in topo.Instance, how any) error
	}); ok {
		if err := own.Construct(in, how); err != nil {
			return err
		}
	} else {
		value := field(at, "p")
		made, err := construct(in, reflect.ValueOf(how), value.Type())
		if err != nil {
			return err
		}
		value.Set(made)
	}
	p.Adopt(processor, x, field(at, "unit").Addr().Interface().(*Unit), outOf(field(at, "out")))
	if x, ok := x.(interface{ Adopted() }); ok {
		x.Adopted()
	}
	return nil
}

// outOf finds the Out of a sender: the sender itself, where nothing is sent, or its
// field out; either may be a pointer.
func outOf(sender reflect.Value) *Out {
	for {
		if sender.Kind() == reflect.Pointer {
			sender = sender.Elem()
		}
		if out, ok := sender.Addr().Interface().(*Out); ok {
			return out
		}
		sender = field(sender, "out")
	}
}

// field is a field of a struct of generated code, which may be set although its name is
// not exported.
func field(of reflect.Value, name string) reflect.Value {
	f := of.FieldByName(name)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

// Construct makes the instance that in describes: construct does, or where it is nil
// the instance is a zero value. An error names the instance, and so does one for a
// panic. P is a pointer.
func Construct[P any](in topo.Instance, how func(topo.Instance) (P, error)) (p P, err error) {
	made, err := construct(in, reflect.ValueOf(how), reflect.TypeFor[P]())
	if err != nil {
		return p, err
	}
	return made.Interface().(P), nil
}

// construct makes the instance that in describes, of type pointer: how is a function as
// in Processors of generated code, or not valid, or nil.
func construct(in topo.Instance, how reflect.Value, pointer reflect.Type) (p reflect.Value, err error) {
	if !how.IsValid() || how.IsNil() {
		return reflect.New(pointer.Elem()), nil
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = constructError(in, chain.OfPanic(cause))
			err = fmt.Errorf("%w\n%s", err, debug.Stack())
		}
	}()
	results := how.Call([]reflect.Value{reflect.ValueOf(in)})
	p = results[0]
	err, _ = results[1].Interface().(error)
	if err == nil && p.IsNil() {
		err = errors.New("the constructor returned neither an instance nor an error")
	}
	if err != nil {
		return reflect.Value{}, constructError(in, err)
	}
	return p, nil
}

func constructError(in topo.Instance, err error) error {
	return fmt.Errorf("constructing processor %q, instance %d: %w", in.Processor, in.Index, err)
}
