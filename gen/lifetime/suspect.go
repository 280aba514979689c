package lifetime

import (
	"go/ast"
	"go/token"
	"strings"
)

// Suspects are the handlers whose syntax does not show that they keep nothing.
// It needs no types, and so leaves out a handler only where each use of the
// parameter is of a form that cannot keep it, whatever names mean.
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
	methods  map[[2]string]*ast.FuncDecl // by type and name
	declared map[string]bool             // names of functions and methods
}

func newSyntax(files []*ast.File) *syntax {
	s := &syntax{methods: make(map[[2]string]*ast.FuncDecl), declared: make(map[string]bool)}
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			s.declared[f.Name.Name] = true
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
		return s.declared[h.Name] // of an embedded type, or of an alias's
	}
	if f.Body == nil {
		return false
	}
	kinds := make(map[string]Kind)
	index := 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if kind, ok := h.params()[index]; ok && name.Name != "_" {
				kinds[name.Name] = kind
			}
			index++
		}
	}
	if len(kinds) == 0 {
		return false
	}
	u := &uses{syntax: s, kinds: kinds}
	ast.Inspect(f.Body, u.visit)
	return u.doubt
}

// uses looks at each use of some names in a body.
type uses struct {
	*syntax
	kinds map[string]Kind
	stack []ast.Node // from the body to the node at hand
	doubt bool
}

func (u *uses) visit(n ast.Node) bool {
	if n == nil {
		u.stack = u.stack[:len(u.stack)-1]
		return true
	}
	if id, ok := n.(*ast.Ident); ok && !u.selected(id) {
		if kind, ok := u.kinds[id.Name]; ok && !u.harmless(kind, id) {
			u.doubt = true
		}
	}
	if u.doubt {
		return false
	}
	u.stack = append(u.stack, n)
	return true
}

// selected reports whether id is the name behind a dot.
func (u *uses) selected(id *ast.Ident) bool {
	s, ok := u.parent(0).(*ast.SelectorExpr)
	return ok && s.Sel == id
}

// parent is the node that holds the one at hand, or the one so many above it.
func (u *uses) parent(up int) ast.Node {
	if i := len(u.stack) - 1 - up; i >= 0 {
		return u.stack[i]
	}
	return nil
}

// harmless reports whether a use cannot keep the value.
func (u *uses) harmless(kind Kind, id *ast.Ident) bool {
	for _, n := range u.stack {
		switch n.(type) {
		case *ast.FuncLit, *ast.GoStmt:
			return false
		}
	}
	switch kind {
	case Message:
		return u.reads(id)
	case Sender:
		s, selector := u.parent(0).(*ast.SelectorExpr)
		call, called := u.parent(1).(*ast.CallExpr)
		return selector && called && call.Fun == s && strings.HasPrefix(s.Sel.Name, "Send")
	default:
		return u.passes(id)
	}
}

// reads reports whether a message pointer is only followed: its fields are read
// or set, or the message is copied.
func (u *uses) reads(id *ast.Ident) bool {
	var child ast.Node = id
	followed := false
	for up := 0; ; up++ {
		switch n := u.parent(up).(type) {
		case *ast.ParenExpr:
		case *ast.StarExpr:
			followed = true
		case *ast.SelectorExpr:
			if u.declared[n.Sel.Name] {
				return false // may be a method
			}
			followed = true
		case *ast.IndexExpr:
			if n.X != child {
				return followed
			}
		case *ast.SliceExpr:
			return n.X != child && followed // of an array it is an address
		case *ast.UnaryExpr:
			return followed && n.Op != token.AND
		case *ast.CallExpr:
			return followed && n.Fun != child
		case *ast.BinaryExpr:
			return true // compared
		default:
			return followed
		}
		child = u.parent(up)
	}
}

// passes reports whether a context is only asked, or passed to a function of
// another package that does not derive one from it.
func (u *uses) passes(id *ast.Ident) bool {
	switch n := u.parent(0).(type) {
	case *ast.SelectorExpr:
		call, ok := u.parent(1).(*ast.CallExpr)
		return ok && call.Fun == n
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || n.Fun == id || u.declared[s.Sel.Name] || strings.HasPrefix(s.Sel.Name, "With") {
			return false
		}
		return !keeperNames[s.Sel.Name]
	}
	return false
}
