package bind

import (
	"fmt"
	"go/token"
	"go/types"
	pathpkg "path"
	"sync"

	"github.com/topogen/topogen/gen/plan"
)

// standIns are packages with the few foreign types that handlers and messages
// mostly mention. What they lack is an error to the type checker, and invalid to
// the binder.
type standIns struct{}

func (standIns) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if p := standInPackages()[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no stand-in for %q", path)
}

// standInPackages are shared, since nothing changes them.
var standInPackages = sync.OnceValue(func() map[string]*types.Package {
	number := types.Typ[types.Int64]
	timePackage := newStandIn("time", map[string]types.Type{
		"Time": types.NewStruct(nil, nil), "Duration": number, "Month": types.Typ[types.Int], "Weekday": types.Typ[types.Int],
	})
	instant := timePackage.Scope().Lookup("Time").Type()
	field := func(name string, t types.Type) *types.Var { return types.NewField(token.NoPos, nil, name, t, false) }
	list := []*types.Package{
		timePackage,
		newStandIn("context", map[string]types.Type{"Context": types.NewInterfaceType(nil, nil)}),
		newStandIn(plan.Topo, map[string]types.Type{
			"Tick":       types.NewStruct([]*types.Var{field("Time", instant), field("N", types.Typ[types.Uint64])}, nil),
			"DeadLetter": types.NewStruct(nil, nil),
			"Instance": types.NewStruct([]*types.Var{
				field("Processor", types.Typ[types.String]), field("Index", types.Typ[types.Int]), field("Number", types.Typ[types.Int]),
			}, nil),
		}),
	}
	packages := make(map[string]*types.Package, len(list))
	for _, p := range list {
		packages[p.Path()] = p
	}
	return packages
})

func newStandIn(path string, declared map[string]types.Type) *types.Package {
	p := types.NewPackage(path, pathpkg.Base(path))
	for name, underlying := range declared {
		object := types.NewTypeName(token.NoPos, p, name, nil)
		types.NewNamed(object, underlying, nil)
		p.Scope().Insert(object)
	}
	p.MarkComplete()
	return p
}

// whole reports whether t is known in every part that its identity depends on.
func whole(t types.Type) bool { return wholeType(t, make(map[types.Type]bool)) }

func wholeType(t types.Type, seen map[types.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	switch t := t.(type) {
	case *types.Basic:
		return t.Kind() != types.Invalid
	case *types.Alias:
		return wholeType(types.Unalias(t), seen)
	case *types.Named:
		for i := range t.TypeArgs().Len() {
			// An argument must also meet a constraint, which must be known for that.
			if !wholeType(t.TypeArgs().At(i), seen) || !wholeMembers(t.TypeParams().At(i).Constraint()) {
				return false
			}
		}
		basic, ok := t.Underlying().(*types.Basic) // a type declared as one that is not known
		return !ok || basic.Kind() != types.Invalid
	case *types.Pointer:
		return wholeType(t.Elem(), seen)
	case *types.Slice:
		return wholeType(t.Elem(), seen)
	case *types.Array:
		return t.Len() >= 0 && wholeType(t.Elem(), seen)
	case *types.Chan:
		return wholeType(t.Elem(), seen)
	case *types.Map:
		return wholeType(t.Key(), seen) && wholeType(t.Elem(), seen)
	case *types.Tuple:
		for i := range t.Len() {
			if !wholeType(t.At(i).Type(), seen) {
				return false
			}
		}
	case *types.Signature:
		return wholeType(t.Params(), seen) && wholeType(t.Results(), seen)
	case *types.Struct:
		for i := range t.NumFields() {
			if !wholeType(t.Field(i).Type(), seen) {
				return false
			}
		}
	case *types.Interface:
		for i := range t.NumEmbeddeds() {
			if !wholeType(t.EmbeddedType(i), seen) {
				return false
			}
		}
		for i := range t.NumExplicitMethods() {
			if !wholeType(t.ExplicitMethod(i).Type(), seen) {
				return false
			}
		}
	case *types.Union:
		for i := range t.Len() {
			if !wholeType(t.Term(i).Type(), seen) {
				return false
			}
		}
	}
	return true
}

// wholeMembers reports whether the fields and methods of t are all known: no
// embedded field, at any depth, is of an unknown type.
func wholeMembers(t types.Type) bool { return wholeEmbedded(t, make(map[types.Type]bool)) }

func wholeEmbedded(t types.Type, seen map[types.Type]bool) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if seen[t] {
		return true
	}
	seen[t] = true
	if named, ok := types.Unalias(t).(*types.Named); ok && named.Obj().Pkg() != nil && standInPackages()[named.Obj().Pkg().Path()] == named.Obj().Pkg() {
		return false // a stand-in has no methods
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() != types.Invalid
	case *types.Interface:
		for m := range u.ExplicitMethods() {
			if !whole(m.Signature()) {
				return false
			}
		}
		for e := range u.EmbeddedTypes() {
			if !whole(e) || !wholeEmbedded(e, seen) {
				return false
			}
		}
	case *types.Struct:
		for i := range u.NumFields() {
			if f := u.Field(i); f.Embedded() && !wholeEmbedded(f.Type(), seen) {
				return false
			}
		}
	}
	return true
}
