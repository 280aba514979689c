package bind

import (
	"go/types"
	"slices"
	"strings"

	"github.com/topogen/topogen/gen/lifetime"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// key finds the field or method that chooses the instance for an edge.
func (b *binder) key(i int) {
	e := &b.plan.Edges[i]
	if e.Route != plan.Key && e.Route != plan.ID && e.Route != plan.ToNode {
		return
	}
	if b.plan.Processors[e.To].Machine != nil {
		return // the key is the key of the update
	}
	if t := b.messageTypes[e.Message]; t != nil {
		b.Facts.Edges[i].Key, _ = b.walk(e.Route, b.topology.Edges[i].Route.Field, t)
	}
}

// walk follows the path of a key through a type, and returns the type of the key. It
// reports an invalid path and returns nil.
func (b *binder) walk(route plan.RouteKind, field spec.Text, t types.Type) (*plan.Selector, types.Type) {
	w := &keyWalk{binder: b, key: new(plan.Selector), route: route, field: field, t: t}
	for name := range strings.SplitSeq(w.field.Value, ".") {
		if !w.step(name) {
			return w.key, nil
		}
	}
	w.key.Pointers = len(w.key.Nils) > 0
	w.kind()
	return w.key, w.t
}

// keyWalk follows the path of a key through a message's type.
type keyWalk struct {
	*binder
	key   *plan.Selector
	route plan.RouteKind // with ID the key is an index, with ToNode the name of a node
	field spec.Text
	t     types.Type
}

func (w *keyWalk) fail(code, suggestion, format string, args ...any) bool {
	w.at(code, w.field, suggestion, format, args...)
	return false
}

// membersShown is the number of fields and methods that a finding lists; a longer list is
// hard to read.
const membersShown = 8

// step follows the path to the field or method called name.
func (w *keyWalk) step(name string) bool {
	if w.key.Method {
		return w.fail(finding.KeyField, "", "a method must be the last part of a key, got %s, where %s is a method", w.field.Value, w.key.Access[len(w.key.Access)-1])
	}
	text := w.typeText(w.t)
	object, index, _ := types.LookupFieldOrMethod(w.t, true, w.checked.pkg, name)
	switch object := object.(type) {
	case nil:
		if index != nil {
			return w.fail(finding.KeyField, "", "%s in %s is ambiguous: several embedded fields have it", name, text)
		}
		if named := lifetime.NamedOf(w.t); named != nil {
			if hidden, _, _ := types.LookupFieldOrMethod(named, true, named.Obj().Pkg(), name); hidden != nil {
				return w.fail(finding.KeyField, "", "%s of %s is not exported by its package", name, text)
			}
		}
		suggestion, has := "", members(w.t, w.checked.pkg)
		if near := w.near.Nearest(name, has); near != "" {
			suggestion = "did you mean " + near + "?"
		} else if len(has) > 0 && len(has) <= membersShown {
			suggestion = "it has " + strings.Join(has, ", ")
		}
		return w.fail(finding.KeyField, suggestion, "%s has no field or method %s", text, name)
	case *types.Func:
		sig := object.Signature()
		if sig.Params().Len() > 0 || sig.Results().Len() != 1 {
			return w.fail(finding.KeyType, "", "the method of a key must have no parameters and one result, got %s of %s", w.functionText(object), text)
		}
		w.key.Method = true
	}
	if !w.descend(index[:len(index)-1]) {
		return false
	}
	w.nilable() // a method may dereference its receiver
	w.key.Access = append(w.key.Access, name)
	w.t = object.Type()
	if w.key.Method {
		w.t = object.Type().(*types.Signature).Results().At(0).Type()
	}
	return true
}

// nilable records whether the path so far ends in a pointer, which may be nil.
func (w *keyWalk) nilable() {
	if _, ok := w.t.Underlying().(*types.Pointer); ok {
		w.key.Nils = append(w.key.Nils, len(w.key.Access))
	}
}

// descend follows the path through embedded fields. It writes them out only if one of
// them is a pointer, because the generated code must check that pointer.
func (w *keyWalk) descend(index []int) bool {
	if len(index) == 0 {
		return true
	}
	t, pointer, hidden := w.t, false, ""
	var from []types.Type
	var names []string
	for _, i := range index {
		from = append(from, t)
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		f := t.Underlying().(*types.Struct).Field(i)
		names, t = append(names, f.Name()), f.Type()
		if _, ok := t.Underlying().(*types.Pointer); ok {
			pointer = true
		}
		if !f.Exported() && f.Pkg() != w.checked.pkg {
			hidden = f.Name()
		}
	}
	switch {
	case !pointer:
		w.nilable() // the struct with the embedded fields may be behind a pointer
	case hidden != "":
		return w.fail(finding.KeyField, "", "key %s leads through the embedded pointer %s, which is not exported by its package", w.field.Value, hidden)
	default:
		for n, name := range names {
			w.t = from[n]
			w.nilable()
			w.key.Access = append(w.key.Access, name)
		}
	}
	w.t = t
	return true
}

// kind finds the kind of the key's type, which determines its hash function.
func (w *keyWalk) kind() {
	id := w.route == plan.ID
	switch u := w.t.Underlying().(type) {
	case *types.Basic:
		if w.route == plan.ToNode {
			if u.Info()&types.IsString == 0 {
				break
			}
			w.key.KeyKind = plan.KeyString
			return
		}
		switch info := u.Info(); {
		case info&types.IsUnsigned != 0:
			w.key.KeyKind = plan.KeyUint
			return
		case info&types.IsInteger != 0:
			w.key.KeyKind = plan.KeyInt
			return
		case info&types.IsString != 0 && !id:
			w.key.KeyKind = plan.KeyString
			return
		case info&types.IsBoolean != 0 && !id:
			w.key.KeyKind = plan.KeyBool
			return
		}
	case *types.Slice:
		if types.Identical(u.Elem(), types.Typ[types.Byte]) && !id && w.route != plan.ToNode {
			w.key.KeyKind = plan.KeyBytes
			return
		}
	}
	switch w.route {
	case plan.ID:
		w.fail(finding.KeyType, "", "an id must be an integer, got %s of type %s", w.field.Value, w.typeText(w.t))
		return
	case plan.ToNode:
		w.fail(finding.KeyType, "", "the name of a node must be a string, got %s of type %s", w.field.Value, w.typeText(w.t))
		return
	}
	w.fail(finding.KeyType, "", "a key must be a string, []byte, bool or integer, got %s of type %s", w.field.Value, w.typeText(w.t))
}

// members lists the fields and methods of t that pkg may use, including promoted ones.
func members(t types.Type, pkg *types.Package) []string {
	names := make(map[string]bool)
	addMembers(t, pkg, names, make(map[types.Type]bool))
	list := make([]string, 0, len(names))
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func addMembers(t types.Type, pkg *types.Package, names map[string]bool, seen map[types.Type]bool) {
	if p, ok := types.Unalias(t).Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	t = types.Unalias(t)
	if seen[t] {
		return
	}
	seen[t] = true
	if named, ok := t.(*types.Named); ok {
		for m := range named.Methods() {
			if m.Exported() || m.Pkg() == pkg {
				names[m.Name()] = true
			}
		}
	}
	if s, ok := t.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if f.Exported() || f.Pkg() == pkg {
				names[f.Name()] = true
			}
			if f.Embedded() {
				addMembers(f.Type(), pkg, names, seen)
			}
		}
	}
}
