package wire

import (
	"go/types"
	"strings"

	"github.com/topogen/topogen/spec"
)

// Packages of the runtime and of protobuf.
const (
	runtimePath      = "github.com/topogen/topogen/runtime/wire"
	protoPath        = "google.golang.org/protobuf/proto"
	protoreflectPath = "google.golang.org/protobuf/reflect/protoreflect"
)

// qualifier qualifies types as the file of numbers does.
func (b *builder) qualifier(p *types.Package) string {
	if p.Path() == b.pkg.Path() {
		return ""
	}
	return p.Path()
}

// nameOf is a message name for t: Order, PageString; "" for a type without a name.
func nameOf(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		name := spec.Exported(t.Obj().Name())
		for a := range t.TypeArgs().Types() {
			name += nameOf(a)
		}
		return name
	case *types.Basic:
		return spec.Exported(t.Name())
	case *types.Pointer:
		return nameOf(t.Elem())
	}
	return ""
}

// special is the element for a type with a special name or methods.
func special(t types.Type) (Elem, bool) {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || isForeign(t) {
		return Elem{}, false
	}
	if obj := named.Obj(); obj.Pkg() != nil && obj.Pkg().Path() == "time" {
		switch obj.Name() {
		case "Time":
			return Elem{Kind: Time}, true
		case "Duration":
			return Elem{Kind: Duration}, true
		}
	}
	if method(named, "UnmarshalBinary", []string{"[]byte"}, []string{"error"}) {
		e := Elem{Kind: Binary, Type: types.TypeString(named, nil)}
		e.Appends = method(named, "AppendBinary", []string{"[]byte"}, []string{"[]byte", "error"})
		if e.Appends || method(named, "MarshalBinary", nil, []string{"[]byte", "error"}) {
			return e, true
		}
	}
	if s, ok := named.Underlying().(*types.Struct); ok && s.NumFields() == 3 && s.Field(0).Name() == "wall" && s.Field(0).Pkg().Path() == "time" {
		return Elem{Kind: Time, Convert: true}, true
	}
	return Elem{}, false
}

// method reports whether t itself declares a method. A promoted method would encode only
// the embedded field.
func method(t *types.Named, name string, params, results []string) bool {
	for i := range t.NumMethods() {
		if m := t.Method(i); m.Name() == name {
			s := m.Signature()
			return equalTypes(s.Params(), params) && equalTypes(s.Results(), results)
		}
	}
	return false
}

func equalTypes(t *types.Tuple, want []string) bool {
	if t.Len() != len(want) {
		return false
	}
	for i, w := range want {
		if strings.Replace(types.TypeString(t.At(i).Type(), nil), "uint8", "byte", 1) != w {
			return false
		}
	}
	return true
}

// isForeign reports whether *t is a proto.Message.
func isForeign(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && method(named, "ProtoReflect", nil, []string{protoreflectPath + ".Message"})
}

// bytesKind is the kind of a list whose elements are bytes.
func bytesKind(t types.Type) (kind Kind, ok bool) {
	isByte := func(t types.Type) bool {
		basic, ok := types.Unalias(t).(*types.Basic)
		return ok && basic.Kind() == types.Uint8
	}
	switch u := t.(type) {
	case *types.Slice:
		return Bytes, isByte(u.Elem())
	case *types.Array:
		return ByteArray, isByte(u.Elem())
	}
	return kind, false
}

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// basics are the elements of basic types.
var basics = map[types.BasicKind]Elem{
	types.Bool: {Kind: Bool}, types.String: {Kind: String},
	types.Complex64: {Kind: Complex}, types.Complex128: {Kind: Complex},
	types.Float32: {Kind: Float, Bits: 32}, types.Float64: {Kind: Float, Bits: 64},
	types.Int: {Kind: Int, Bits: 64}, types.Int64: {Kind: Int, Bits: 64},
	types.Int8: {Kind: Int, Bits: 32}, types.Int16: {Kind: Int, Bits: 32}, types.Int32: {Kind: Int, Bits: 32},
	types.Uint: {Kind: Uint, Bits: 64}, types.Uint64: {Kind: Uint, Bits: 64}, types.Uintptr: {Kind: Uint, Bits: 64},
	types.Uint8: {Kind: Uint, Bits: 32}, types.Uint16: {Kind: Uint, Bits: 32}, types.Uint32: {Kind: Uint, Bits: 32},
}

// size estimates the size of t in memory, up to most. It also ends for invalid types that
// contain themselves.
func size(t types.Type, most int64) int64 {
	if most <= 0 {
		return 1
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return max(1, types.SizesFor("gc", "amd64").Sizeof(u))
	case *types.Slice:
		return 24
	case *types.Interface:
		return 16
	case *types.Array:
		if u.Len() == 0 {
			return 1
		}
		each := size(u.Elem(), most-1)
		if each > most/u.Len() {
			return most + 1
		}
		return each * u.Len()
	case *types.Struct:
		sum := int64(1)
		for i := 0; i < u.NumFields() && sum <= most; i++ {
			sum += size(u.Field(i).Type(), most-sum)
		}
		return sum
	}
	return 8
}
