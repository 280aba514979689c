package lifetime

import (
	"go/ast"
)

// Suspects are the handlers whose syntax does not show that they keep nothing. It
// needs no types. It leaves out a handler where each use of a parameter has a form
// that keeps nothing, such as reading a field or calling a method of the sender;
// calls are followed to all functions of that name.
func Suspects(files []*ast.File, handlers []Handler) []Handler {
	s := newSyntax(files)
	var suspects []Handler
	for _, h := range handlers {
		if s.suspect(h) {
			suspects = append(suspects, h)
		}
	}
	return suspects
}

// syntax is what files declare.
type syntax struct {
	methods   map[[2]string]*ast.FuncDecl // by type and name
	functions map[string][]*ast.FuncDecl  // and methods, by name
	passed    map[passing]bool            // whether functions of a name are harmless to an argument
}

// passing is an argument of functions of some name.
type passing struct {
	name  string
	index int // without the receiver, or receiver
	kind  Kind
}

// receiver is the index of the receiver.
const receiver = -1

func newSyntax(files []*ast.File) *syntax {
	s := &syntax{
		methods:   make(map[[2]string]*ast.FuncDecl),
		functions: make(map[string][]*ast.FuncDecl),
		passed:    make(map[passing]bool),
	}
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			s.functions[f.Name.Name] = append(s.functions[f.Name.Name], f)
			if f.Recv != nil && len(f.Recv.List) == 1 {
				s.methods[[2]string{typeName(f.Recv.List[0].Type), f.Name.Name}] = f
			}
		}
	}
	return s
}

// typeName is the name of a receiver's type.
func typeName(e ast.Expr) string {
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.ParenExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

func (s *syntax) suspect(h Handler) bool {
	f := s.methods[[2]string{h.Type, h.Name}]
	if f == nil {
		return len(s.functions[h.Name]) > 0 // the method of an embedded type, or the type is an alias
	}
	return !s.harmless(f, h.params())
}

// harmless reports whether a function keeps nothing of its parameters.
func (s *syntax) harmless(f *ast.FuncDecl, params map[int]Kind) bool {
	if f.Body == nil {
		return true
	}
	u := &uses{syntax: s, kinds: make(map[string]Kind)}
	if kind, ok := params[receiver]; ok && f.Recv != nil && len(f.Recv.List[0].Names) > 0 {
		u.kinds[f.Recv.List[0].Names[0].Name] = kind
	}
	index := 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if kind, ok := params[index]; ok && name.Name != "_" {
				if _, variadic := field.Type.(*ast.Ellipsis); variadic {
					return false
				}
				u.kinds[name.Name] = kind
			}
			index++
		}
		if len(field.Names) == 0 {
			index++
		}
	}
	for index := range params {
		if index >= f.Type.Params.NumFields() {
			return false // a variadic function with several arguments
		}
	}
	for again := len(u.kinds) > 0; again && !u.doubt; {
		u.renamed = false
		ast.Inspect(f.Body, u.visit)
		again = u.renamed
	}
	return !u.doubt
}

// passes reports whether all functions of a name keep nothing of an argument. A
// recursive call by itself keeps nothing.
func (s *syntax) passes(p passing) bool {
	if harmless, ok := s.passed[p]; ok {
		return harmless
	}
	s.passed[p] = true
	for _, f := range s.functions[p.name] {
		if !s.harmless(f, map[int]Kind{p.index: p.kind}) {
			s.passed[p] = false
			break
		}
	}
	return s.passed[p]
}
