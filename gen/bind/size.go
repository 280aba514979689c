package bind

import (
	"fmt"
	"go/ast"
	"go/token"
)

const (
	// typePartsMax bounds a type that is written out, with what aliases and type
	// arguments stand for in their places, or laid out, with the fields of fields.
	// A type checker goes through all of them, and twenty lines of Go suffice for
	// more than it ever comes through with.
	typePartsMax = 1 << 16

	// packagePartsMax bounds those of all types that one package declares and
	// instantiates.
	packagePartsMax = 1 << 22

	// literalPart is how many bytes of a constant text count as one part.
	literalPart = 4 << 10
)

// size is how many parts a type has: written out, and laid out in memory, where
// it ends at pointers.
type size struct{ text, memory int }

func (s size) plus(t size) size {
	return size{min(s.text+t.text, typePartsMax+1), min(s.memory+t.memory, typePartsMax+1)}
}

func (s size) tooLarge() bool { return max(s.text, s.memory) > typePartsMax }

// sizer measures what a package declares by its syntax, before a type checker
// looks at it: that cannot be stopped.
type sizer struct {
	types     map[string][]*ast.TypeSpec // of a function too; then a name may have several
	constants map[string][]ast.Expr
	known     map[ast.Expr]size // outside of generic types
	instances map[instance]size // of generic types; while one is measured it is nothing
	total     int
}

// instance is a generic type with type arguments as far as they matter.
type instance struct {
	declared *ast.TypeSpec
	sizes    string
}

// oversized returns the name of a type or constant that is too large to be
// checked; nil if there is none.
func oversized(files []*ast.File) *ast.Ident {
	s := &sizer{
		types:     make(map[string][]*ast.TypeSpec),
		constants: make(map[string][]ast.Expr),
		known:     make(map[ast.Expr]size),
		instances: make(map[instance]size),
	}
	for _, file := range files {
		ast.Inspect(file, s.declare)
	}
	var found *ast.Ident
	for _, file := range files {
		var last *ast.Ident // in whose declaration we are
		ast.Inspect(file, func(n ast.Node) bool {
			whole := size{}
			switch n := n.(type) {
			case *ast.FuncDecl:
				last = n.Name
			case *ast.TypeSpec:
				last = n.Name
				if n.TypeParams == nil { // else it is measured where it is instantiated
					whole = s.of(n.Type, nil)
				}
			case *ast.ValueSpec:
				last = n.Names[0]
				for _, value := range n.Values {
					if text := s.of(value, nil); text.tooLarge() {
						whole = text
					}
				}
			case *ast.IndexExpr, *ast.IndexListExpr:
				whole = s.of(n.(ast.Expr), nil)
			}
			s.total += max(whole.text, whole.memory)
			if found == nil && last != nil && (whole.tooLarge() || s.total > packagePartsMax) {
				found = last
			}
			return found == nil
		})
	}
	return found
}

func (s *sizer) declare(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.TypeSpec:
		s.types[n.Name.Name] = append(s.types[n.Name.Name], n)
	case *ast.GenDecl:
		if n.Tok != token.CONST {
			break
		}
		for _, spec := range n.Specs {
			v, _ := spec.(*ast.ValueSpec)
			for i, value := range v.Values[:min(len(v.Values), len(v.Names))] {
				s.constants[v.Names[i].Name] = append(s.constants[v.Names[i].Name], value)
			}
		}
	}
	return true
}

// of measures an expression; bound has the sizes of type parameters.
func (s *sizer) of(e ast.Expr, bound map[string]size) size {
	if bound != nil {
		return s.measure(e, bound)
	}
	if known, ok := s.known[e]; ok {
		return known
	}
	s.known[e] = size{1, 1} // a cycle, which is for others to report
	known := s.measure(e, nil)
	s.known[e] = known
	return known
}

func (s *sizer) measure(e ast.Expr, bound map[string]size) size {
	one := size{1, 1}
	indirect := func(list ...ast.Expr) size {
		whole := s.sum(one, bound, list...)
		return size{whole.text, 1}
	}
	switch e := e.(type) {
	case *ast.Ident:
		return s.name(e.Name, bound)
	case *ast.BasicLit:
		return size{1 + len(e.Value)/literalPart, 1}
	case *ast.ParenExpr:
		return s.of(e.X, bound)
	case *ast.BinaryExpr: // of a union, or of a constant text
		return s.sum(one, bound, e.X, e.Y)
	case *ast.UnaryExpr:
		return s.sum(one, bound, e.X)
	case *ast.StructType:
		return s.sum(one, bound, fieldTypes(e.Fields)...)
	case *ast.ArrayType:
		if e.Len == nil {
			return indirect(e.Elt)
		}
		return s.sum(one, bound, e.Elt)
	case *ast.InterfaceType:
		return s.sum(one, bound, fieldTypes(e.Methods)...)
	case *ast.StarExpr:
		return indirect(e.X)
	case *ast.ChanType:
		return indirect(e.Value)
	case *ast.MapType:
		return indirect(e.Key, e.Value)
	case *ast.Ellipsis:
		return indirect(e.Elt)
	case *ast.FuncType:
		return indirect(append(fieldTypes(e.Params), fieldTypes(e.Results)...)...)
	case *ast.IndexExpr:
		return s.instance(e.X, []ast.Expr{e.Index}, bound)
	case *ast.IndexListExpr:
		return s.instance(e.X, e.Indices, bound)
	}
	return one
}

func (s *sizer) sum(whole size, bound map[string]size, list ...ast.Expr) size {
	for _, e := range list {
		whole = whole.plus(s.of(e, bound))
	}
	return whole
}

// name measures what a name stands for; of several the largest.
func (s *sizer) name(name string, bound map[string]size) size {
	if known, ok := bound[name]; ok {
		return known
	}
	largest := size{1, 1}
	for _, value := range s.constants[name] {
		largest.text = max(largest.text, s.of(value, nil).text)
	}
	for _, t := range s.types[name] {
		if t.TypeParams != nil {
			continue
		}
		whole := s.of(t.Type, nil)
		if t.Assign.IsValid() { // an alias is what it stands for
			largest.text = max(largest.text, whole.text)
		}
		largest.memory = max(largest.memory, whole.plus(size{1, 1}).memory)
	}
	return largest
}

// instance measures a generic type with its arguments.
func (s *sizer) instance(generic ast.Expr, arguments []ast.Expr, bound map[string]size) size {
	whole := s.sum(size{1, 1}, bound, arguments...)
	name, ok := ast.Unparen(generic).(*ast.Ident)
	if !ok {
		return whole // of another package
	}
	for _, t := range s.types[name.Name] {
		if t.TypeParams == nil {
			continue
		}
		inner := make(map[string]size)
		key := instance{declared: t}
		for i, p := range names(t.TypeParams) {
			if i < len(arguments) {
				inner[p.Name] = s.of(arguments[i], bound)
				key.sizes += fmt.Sprint(inner[p.Name])
			}
		}
		laid, ok := s.instances[key]
		if !ok && s.total <= packagePartsMax {
			s.instances[key] = size{}
			laid = s.of(t.Type, inner)
			s.instances[key] = laid
			s.total += max(laid.text, laid.memory)
		}
		if t.Assign.IsValid() {
			whole.text = max(whole.text, laid.text)
		}
		whole.memory = max(whole.memory, laid.memory)
	}
	return whole
}

func names(list *ast.FieldList) []*ast.Ident {
	var all []*ast.Ident
	for _, field := range list.List {
		all = append(all, field.Names...)
	}
	return all
}

// fieldTypes lists the type of each field, also where several share it.
func fieldTypes(list *ast.FieldList) []ast.Expr {
	if list == nil {
		return nil
	}
	var all []ast.Expr
	for _, field := range list.List {
		for range max(len(field.Names), 1) {
			all = append(all, field.Type)
		}
	}
	return all
}
