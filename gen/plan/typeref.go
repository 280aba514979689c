package plan

import (
	"go/types"
	"strings"

	"github.com/topogen/topogen/spec"
)

// TypeRef is a Go type as the generated package writes it. The import path "" means the
// generated package.
type TypeRef = spec.TypeExpr

// The forms of a TypeRef.
const (
	Named   = spec.NamedType
	Pointer = spec.PointerType
	Slice   = spec.SliceType
	Array   = spec.ArrayType
	Map     = spec.MapType
	Empty   = spec.StructType // without Fields it is NoResult
)

// TypeOf returns t as package own writes it. problem says why own cannot write it.
func TypeOf(t types.Type, own *types.Package) (ref TypeRef, problem string) {
	inner := func(t types.Type) *TypeRef {
		r, p := TypeOf(t, own)
		if problem == "" {
			problem = p
		}
		return &r
	}
	var object *types.TypeName
	var args *types.TypeList
	switch t := t.(type) {
	case *types.Basic:
		ref.Name = t.Name()
	case *types.Pointer:
		ref.Kind, ref.Elem = Pointer, inner(t.Elem())
	case *types.Slice:
		ref.Kind, ref.Elem = Slice, inner(t.Elem())
	case *types.Array:
		ref.Kind, ref.Elem, ref.Len = Array, inner(t.Elem()), t.Len()
	case *types.Map:
		ref.Kind, ref.Key, ref.Elem = Map, inner(t.Key()), inner(t.Elem())
	case *types.Struct:
		ref.Kind = spec.StructType
		for i := range t.NumFields() {
			f := t.Field(i)
			ref.Fields = append(ref.Fields, spec.TypeField{Name: f.Name(), Type: *inner(f.Type()), Tag: t.Tag(i), Embedded: f.Embedded()})
		}
	case *types.Named:
		object, args = t.Obj(), t.TypeArgs()
	case *types.Alias:
		object, args = t.Obj(), t.TypeArgs()
	case *types.Interface:
		if ref.Name = "any"; !t.Empty() {
			problem = nameless(t, own)
		}
	default:
		problem = nameless(t, own)
	}
	if object == nil {
		return ref, problem
	}
	ref.Name = object.Name()
	if p := object.Pkg(); p != nil && p.Path() != own.Path() {
		ref.Import = p.Path()
		switch {
		case !object.Exported():
			problem = "type " + TypeText(t, own) + " is not exported by its package"
		case !Visible(p.Path(), own.Path()):
			problem = "type " + TypeText(t, own) + " is in an internal package"
		}
	}
	if object.Parent() != nil && object.Pkg() != nil && object.Parent() != object.Pkg().Scope() {
		problem = "type " + object.Name() + " is declared inside a function"
	}
	for arg := range args.Types() {
		ref.Args = append(ref.Args, *inner(arg))
	}
	return ref, problem
}

// Nameless is the end of the problem text for a type without a name, such as a function.
const Nameless = " has no name, so generated code cannot write it"

func nameless(t types.Type, own *types.Package) string {
	return "type " + TypeText(t, own) + Nameless
}

// TypeText is t as a user would write it in package own.
func TypeText(t types.Type, own *types.Package) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p.Path() == own.Path() {
			return ""
		}
		return p.Name()
	})
}

// Visible reports whether the package at path may be imported from own.
func Visible(path, own string) bool {
	at := strings.LastIndex("/"+path+"/", "/internal/")
	if at < 0 {
		return true
	}
	parent := strings.TrimSuffix(path[:max(at-1, 0)], "/")
	return own == parent || strings.HasPrefix(own, parent+"/")
}
