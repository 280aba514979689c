package plan

import "github.com/topogen/topogen/spec"

// TypeRef is a Go type as the generated package writes it: the import path of that
// package itself is "".
type TypeRef = spec.TypeExpr

// The forms of a TypeRef.
const (
	Named   = spec.NamedType
	Pointer = spec.PointerType
	Slice   = spec.SliceType
	Array   = spec.ArrayType
	Map     = spec.MapType
	Empty   = spec.EmptyType
)
