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

// construct makes the instances of all processors, in order. It reads and sets fields
// of generated types by name with reflection. Code for this in the generated types
// would be a function for each processor.
func (p *Pool) construct() error {
	for i := range p.spec.Processors {
		s := &p.spec.Processors[i]
		if s.Instances == nil {
			continue
		}
		instances := reflect.ValueOf(s.Instances).Elem()
		how := s.New
		if reflect.ValueOf(how).IsNil() { // a function of the generated Processors, a typed nil
			how = s.Default
		}
		n := instances.Len()
		if s.Others && p.nodes == nil {
			n--
		}
		for j := range n {
			in := topo.Instance{Processor: s.Name, Index: j, Number: n}
			if err := p.constructOne(i, in, instances.Index(j), how); err != nil {
				return err
			}
		}
	}
	return nil
}

// constructOne makes the instance whose generated struct is at. In a cluster, it is made
// later, if this node runs it.
func (p *Pool) constructOne(processor int, in topo.Instance, at reflect.Value, how any) error {
	if p.nodes == nil {
		if err := makeValue(in, at, how); err != nil {
			return err
		}
	}
	p.Adopt(processor, at.Addr().Interface(), field(at, "unit").Addr().Interface().(*Unit), outOf(field(at, "out")))
	if p.nodes == nil {
		adopted(at)
	}
	return nil
}

// makeValue makes the value of the instance whose generated struct is at.
func makeValue(in topo.Instance, at reflect.Value, how any) error {
	if own, ok := at.Addr().Interface().(interface {
		Construct(in topo.Instance, how any) error
	}); ok {
		return own.Construct(in, how)
	}
	value := field(at, "p")
	made, err := construct(in, reflect.ValueOf(how), value.Type())
	if err != nil {
		return err
	}
	value.Set(made)
	return nil
}

// adopted calls Adopted of the instance whose generated struct is at.
func adopted(at reflect.Value) {
	if x, ok := at.Addr().Interface().(interface{ Adopted() }); ok {
		x.Adopted()
	}
}

// outOf returns the Out of a sender. It is the sender itself if the processor sends
// nothing, or else the field out. Either may be a pointer, which is nil for an instance
// that was not constructed yet; then outOf makes the value.
func outOf(sender reflect.Value) *Out {
	for {
		if sender.Kind() == reflect.Pointer {
			if sender.IsNil() {
				sender.Set(reflect.New(sender.Type().Elem()))
			}
			sender = sender.Elem()
		}
		if out, ok := sender.Addr().Interface().(*Out); ok {
			return out
		}
		sender = field(sender, "out")
	}
}

// field returns a field of a generated struct. The result can be set although the field
// is not exported.
func field(of reflect.Value, name string) reflect.Value {
	f := of.FieldByName(name)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

// Construct makes the instance that in describes, with the function how, or as a zero
// value if how is nil. An error or a panic of how becomes an error that names the
// instance. P is a pointer type.
func Construct[P any](in topo.Instance, how func(topo.Instance) (P, error)) (p P, err error) {
	made, err := construct(in, reflect.ValueOf(how), reflect.TypeFor[P]())
	if err != nil {
		return p, err
	}
	return made.Interface().(P), nil
}

// construct makes the instance that in describes, of the given pointer type. how is a
// function as in the generated Processors. It may be nil or invalid; then the instance
// is a zero value.
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
