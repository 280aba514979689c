package plan

import (
	"strconv"
	"strings"

	"github.com/topogen/topogen/spec"
)

// typeRef converts a type expression of the file, dropping the import path of
// the package that it is generated into.
func typeRef(t *spec.TypeExpr, own string) TypeRef {
	r := TypeRef{Name: t.Name, Len: int64(t.Len)}
	switch t.Kind {
	case spec.PointerType:
		r.Kind = Pointer
	case spec.SliceType:
		r.Kind = Slice
	case spec.ArrayType:
		r.Kind = Array
	case spec.MapType:
		r.Kind = Map
	default:
		r.Kind = Named
	}
	if t.ImportPath != own {
		r.Import = t.ImportPath
	}
	for _, a := range t.Args {
		r.Args = append(r.Args, typeRef(a, own))
	}
	if t.Key != nil {
		key := typeRef(t.Key, own)
		r.Key = &key
	}
	if t.Elem != nil {
		elem := typeRef(t.Elem, own)
		r.Elem = &elem
	}
	return r
}

// String is t with import paths written out, as a topology file does.
func (t TypeRef) String() string { return t.Format(func(path string) string { return path }) }

// Format is t as Go source, where name gives the qualifier for an import path.
func (t TypeRef) Format(name func(path string) string) string {
	switch t.Kind {
	case Pointer:
		return "*" + t.Elem.Format(name)
	case Slice:
		return "[]" + t.Elem.Format(name)
	case Array:
		return "[" + strconv.FormatInt(t.Len, 10) + "]" + t.Elem.Format(name)
	case Map:
		return "map[" + t.Key.Format(name) + "]" + t.Elem.Format(name)
	case Empty:
		return "struct{}"
	}
	s := t.Name
	if t.Import != "" {
		s = name(t.Import) + "." + s
	}
	if len(t.Args) > 0 {
		args := make([]string, len(t.Args))
		for i, a := range t.Args {
			args[i] = a.Format(name)
		}
		s += "[" + strings.Join(args, ", ") + "]"
	}
	return s
}

// Imports appends the import paths that t mentions to paths.
func (t TypeRef) Imports(paths []string) []string {
	if t.Import != "" {
		paths = append(paths, t.Import)
	}
	for _, a := range t.Args {
		paths = a.Imports(paths)
	}
	if t.Key != nil {
		paths = t.Key.Imports(paths)
	}
	if t.Elem != nil {
		paths = t.Elem.Imports(paths)
	}
	return paths
}
