package bind

import (
	"fmt"
	"go/types"
	"strings"

	"github.com/topogen/topogen/gen/lifetime"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec/finding"
)

// ownership reports messages that hold pointers and go to several receivers without a Clone
// method: each receiver needs its own copy, or all must only read the message.
func (b *binder) ownership() {
	for i := range b.plan.Processors {
		p := &b.plan.Processors[i]
		reported := make(map[string]bool)
		for j := range p.Sends {
			s := &p.Sends[j]
			t := b.messageTypes[s.Message]
			if !b.several(s) || b.shared(s) {
				continue
			}
			path := b.pointers(t)
			if path == "" {
				continue
			}
			clone, problem := b.clone(t)
			if b.Facts.Processors[i].Sends[j].Clone = clone; clone || reported[s.Message] {
				continue
			}
			reported[s.Message] = true
			b.at(finding.SharedMemory, b.topology.Edges[s.Edges[0]].Message,
				b.cloneAdvice(s.Message, t),
				"message %s holds pointers (%s) and goes to several receivers (%s)%s", s.Message, path, b.receivers(s), problem)
		}
	}
}

// several reports whether one call of s may reach more than one instance.
func (b *binder) several(s *plan.Send) bool {
	if len(s.Edges) > 1 {
		return true
	}
	e := &b.plan.Edges[s.Edges[0]]
	switch e.Route {
	case plan.Broadcast:
		return b.plan.Processors[e.To].Instances > 1 || b.plan.Everywhere(s.Edges[0])
	case plan.Range:
		return e.Count > 1
	}
	return false
}

func (b *binder) shared(s *plan.Send) bool {
	for _, e := range s.Edges {
		if !b.topology.Edges[e].Shared {
			return false
		}
	}
	return true
}

func (b *binder) receivers(s *plan.Send) string {
	var names []string
	for _, e := range s.Edges {
		to := b.plan.Processors[b.plan.Edges[e].To]
		name := to.Name
		if (to.Instances > 1 || b.plan.Everywhere(e)) && len(s.Edges) == 1 {
			name = fmt.Sprintf("instances of %s", to.Name)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// cloneAdvice is the suggestion for a message that lacks a method Clone.
func (b *binder) cloneAdvice(message string, t types.Type) string {
	const shared = `write "shared: true" on its edges`
	named := lifetime.NamedOf(t)
	switch {
	case named == nil:
		return "declare a type for it that has a method Clone, or " + shared
	case named.Obj().Pkg() != nil && strings.HasPrefix(named.Obj().Pkg().Path(), runtimeModule+"/runtime/"): // an event of a state machine
		return shared
	}
	return fmt.Sprintf("give %s a method Clone() %s, or %s", message, b.typeText(t), shared)
}

// clone reports whether t has a method Clone() that returns t. problem describes a method
// Clone with a wrong signature.
func (b *binder) clone(t types.Type) (ok bool, problem string) {
	f := b.method(t, "Clone")
	if f == nil {
		return false, ""
	}
	s := f.Signature()
	if s.Params().Len() == 0 && s.Results().Len() == 1 && types.Identical(s.Results().At(0).Type(), t) {
		return true, ""
	}
	return false, "; its method Clone must be " + "Clone() " + b.typeText(t)
}

// pointers is the path to the first pointer, slice, map, channel, function or interface
// in t; "" if there is none. Strings and time.Time do not count, because no code can
// change the memory behind them.
func (b *binder) pointers(t types.Type) string {
	if t == nil {
		return ""
	}
	path, found := search(t, isPointer, make(map[types.Type]bool))
	switch {
	case found == nil:
		return ""
	case len(path) > 0:
		return "field " + strings.Join(path, ".")
	}
	switch found.Underlying().(type) {
	case *types.Slice:
		return "a slice"
	case *types.Map:
		return "a map"
	case *types.Chan:
		return "a channel"
	case *types.Signature:
		return "a function"
	case *types.Interface:
		return "an interface"
	}
	return "a pointer"
}

func isPointer(t types.Type) (is, within bool) {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() == types.UnsafePointer, false
	case *types.Struct:
		return false, !isNamed(t, "time", "Time")
	case *types.Array:
		return false, u.Len() > 0
	}
	return true, false
}

// search finds the first type for which the function is returns true: t itself, the element
// of an array, or a field at any depth. path has the names of the fields on the way. The
// second result of the function says whether to search inside a struct or an array.
func search(t types.Type, is func(types.Type) (is, within bool), seen map[types.Type]bool) (path []string, found types.Type) {
	t = types.Unalias(t)
	if seen[t] {
		return nil, nil
	}
	seen[t] = true
	ok, within := is(t)
	if ok {
		return nil, t
	}
	switch u := t.Underlying().(type) {
	case *types.Array:
		if within {
			return search(u.Elem(), is, seen)
		}
	case *types.Struct:
		for i := 0; i < u.NumFields() && within; i++ {
			if path, found := search(u.Field(i).Type(), is, seen); found != nil {
				return append([]string{u.Field(i).Name()}, path...), found
			}
		}
	}
	return nil, nil
}
