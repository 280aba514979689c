package lifetime

import (
	"go/ast"
	"go/token"
	"strings"
)

// Suspects returns the handlers that may keep a parameter. It looks only at the syntax and
// needs no types. It omits a handler that only reads and sets fields of its message, calls
// methods of its sender and its context, and passes values to functions of other packages
// that keep nothing. Most handlers do nothing else.
func Suspects(files []*ast.File, handlers []Handler) []Handler {
	s := syntax{methods: make(map[[2]string]*ast.FuncDecl), declared: make(map[string]bool)}
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				s.declared[f.Name.Name] = true
				if f.Recv != nil && len(f.Recv.List) == 1 {
					s.methods[[2]string{TypeName(f.Recv.List[0].Type), f.Name.Name}] = f
				}
			}
		}
	}
	var suspects []Handler
	for _, h := range handlers {
		f := s.methods[[2]string{h.Type, h.Name}]
		if f == nil && s.declared[h.Name] || f != nil && !s.harmless(f, &h) { // f is nil for a method of an embedded type, and if the type is an alias
			suspects = append(suspects, h)
		}
	}
	return suspects
}

// syntax has the declarations of files.
type syntax struct {
	methods  map[[2]string]*ast.FuncDecl // by type and name
	declared map[string]bool             // names of functions and methods
}

// TypeName is the name of the type of a receiver, or "?".
func TypeName(e ast.Expr) string {
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
			return "?"
		}
	}
}

// harmless reports whether no use of the receiver or a parameter in the function can keep it.
func (s *syntax) harmless(f *ast.FuncDecl, h *Handler) bool {
	if f.Body == nil {
		return true
	}
	kinds := make(map[string]Kind)
	name := func(list []*ast.Field, index int) {
		for _, field := range list {
			for _, name := range field.Names {
				if name.Name != "_" {
					kinds[name.Name] = h.kind(index)
				}
				index++
			}
		}
	}
	name(f.Recv.List, -1)
	name(f.Type.Params.List, 0)
	harmless := true
	ast.PreorderStack(f.Body, nil, func(n ast.Node, above []ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && kinds[id.Name] != Other {
			harmless = harmless && s.harmlessUse(kinds[id.Name], id, above)
		}
		return harmless
	})
	return harmless
}

// harmlessUse reports whether a use cannot keep the value of a parameter, or is a selected
// name after a dot and not the parameter. above are the nodes from the body to the use.
func (s *syntax) harmlessUse(kind Kind, id *ast.Ident, above []ast.Node) bool {
	for _, n := range above {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.FuncLit, *ast.SliceExpr: // a slice of an array is an address
			return false
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				return false
			}
		case *ast.SelectorExpr:
			if n.Sel != id && s.declared[n.Sel.Name] { // it may be a method
				return false
			}
		}
	}
	switch n := above[len(above)-1].(type) {
	case *ast.CallExpr:
		return n.Fun != id && s.foreign(n)
	case *ast.SelectorExpr:
		if n.Sel == id || kind == Message || kind == Update {
			return true
		}
		call, ok := above[len(above)-2].(*ast.CallExpr)
		return ok && call.Fun == n && (kind == Context || strings.HasPrefix(n.Sel.Name, "Send"))
	case *ast.StarExpr:
		return kind == Message || kind == Update // a message or an update is copied
	case *ast.BinaryExpr:
		return true // a comparison
	}
	return false
}

// foreign reports whether no file declares the called function, and Check assumes that neither
// the function nor its result keeps the arguments.
func (s *syntax) foreign(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.declared[f.Sel.Name] || keeperNamed(f.Sel.Name) || sends(f.Sel.Name) || strings.HasPrefix(f.Sel.Name, "With") {
		return false
	}
	x, ok := f.X.(*ast.Ident)
	return !ok || !resultsHoldArguments(x.Name)
}
