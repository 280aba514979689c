package bind

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// withC is an importer that also has "C": a package in which every name that the files
// mention is a type. Only cgo knows the real types. Each name is a distinct type here, so
// that a message type can be compared with the parameter of its handler.
type withC struct {
	types.Importer
	files []*ast.File
}

func (i withC) Import(path string) (*types.Package, error) {
	if path != "C" {
		return i.Importer.Import(path)
	}
	c := types.NewPackage("C", "C")
	for _, file := range i.files {
		if !imports(file, "C") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "C" && c.Scope().Lookup(s.Sel.Name) == nil {
				object := types.NewTypeName(token.NoPos, c, s.Sel.Name, nil)
				types.NewNamed(object, underC(c, s.Sel.Name), nil)
				c.Scope().Insert(object)
			}
			return true
		})
	}
	c.MarkComplete()
	return c, nil
}

// underC is the underlying type of a C type: a number if the name is the name of a number
// type, else a struct with an unexported field, so that it does not count as empty. Sizes
// differ between systems; only the kind matters.
func underC(c *types.Package, name string) types.Type {
	switch name {
	case "char", "schar", "short", "int", "long", "longlong", "int8_t", "int16_t", "int32_t", "int64_t", "ssize_t":
		return types.Typ[types.Int64]
	case "uchar", "ushort", "uint", "ulong", "ulonglong", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "size_t":
		return types.Typ[types.Uint64]
	case "float", "double":
		return types.Typ[types.Float64]
	}
	return types.NewStruct([]*types.Var{types.NewField(token.NoPos, c, "opaque", types.Typ[types.Int64], false)}, nil)
}

// aboutC reports whether an error is about the package "C", whose names have no case.
func aboutC(e types.Error) bool { return strings.HasSuffix(e.Msg, " not exported by package C") }

// usesC reports whether types of the package at path may depend on a stand-in for "C". They do
// if the package imports "C", or imports a package that is checked from source and imports "C".
func (l *loader) usesC(path string) bool {
	for path := range l.reach(make(map[string]bool), path) {
		if r := l.roots[path]; l.fakeC[path] || r != nil && slices.ContainsFunc(r.source.files, importsC) {
			return true
		}
	}
	return false
}

func importsC(file *ast.File) bool { return imports(file, "C") }

// independentOfC reports whether a type error does not depend on the types of C, because it is
// about names.
func independentOfC(message string) bool {
	return strings.HasPrefix(message, "undefined: ") || strings.HasPrefix(message, "could not import ") ||
		strings.HasSuffix(message, " redeclared in this block") || undefinedSend.MatchString(message)
}
