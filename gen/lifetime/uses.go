package lifetime

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// uses looks at each use of some names in a body.
type uses struct {
	*syntax
	kinds   map[string]Kind
	stack   []ast.Node // from the body to the node at hand
	doubt   bool
	renamed bool // kinds has got more names
}

func (u *uses) visit(n ast.Node) bool {
	if n == nil {
		u.stack = u.stack[:len(u.stack)-1]
		return true
	}
	if id, ok := n.(*ast.Ident); ok && !u.selected(id) {
		if kind, ok := u.kinds[id.Name]; ok && !u.harmlessUse(kind, id) {
			u.doubt = true
		}
	}
	if u.doubt {
		return false
	}
	u.stack = append(u.stack, n)
	return true
}

// parent is the node that holds the one at hand, or the one so many above it.
func (u *uses) parent(up int) ast.Node {
	if i := len(u.stack) - 1 - up; i >= 0 {
		return u.stack[i]
	}
	return nil
}

// selected reports whether id is the name behind a dot.
func (u *uses) selected(id *ast.Ident) bool {
	s, ok := u.parent(0).(*ast.SelectorExpr)
	return ok && s.Sel == id
}

// harmlessUse reports whether a use cannot keep the value.
func (u *uses) harmlessUse(kind Kind, id *ast.Ident) bool {
	for i, n := range u.stack {
		switch n := n.(type) {
		case *ast.GoStmt:
			return false
		case *ast.FuncLit:
			if call, ok := u.stack[i-1].(*ast.CallExpr); !ok || call.Fun != n && !u.foreign(call) {
				return false
			}
		}
	}
	if call, ok := u.parent(0).(*ast.CallExpr); ok && call.Fun != id {
		return u.argument(kind, id, call)
	}
	switch kind {
	case Message:
		return u.reads(id)
	case Sender:
		s, selector := u.parent(0).(*ast.SelectorExpr)
		call, called := u.parent(1).(*ast.CallExpr)
		return selector && called && call.Fun == s && strings.HasPrefix(s.Sel.Name, "Send")
	default:
		switch n := u.parent(0).(type) {
		case *ast.SelectorExpr:
			call, ok := u.parent(1).(*ast.CallExpr)
			return ok && call.Fun == n
		case *ast.CallExpr: // what cancels it
			return true
		case *ast.AssignStmt:
			return n.Tok == token.DEFINE && slices.Contains(n.Lhs, ast.Expr(id)) || u.reassigned(n)
		}
		return false
	}
}

// foreign reports whether a call goes to a function that is declared nowhere in
// the package, and of which Check assumes that it keeps nothing: it does not even
// give what holds its arguments.
func (u *uses) foreign(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(u.functions[s.Sel.Name]) > 0 || keeperNames[s.Sel.Name] || sends(s.Sel.Name) {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return !ok || !handsOn(x.Name)
}

// argument reports whether a call cannot keep its argument.
func (u *uses) argument(kind Kind, id *ast.Ident, call *ast.CallExpr) bool {
	index := slices.Index(call.Args, ast.Expr(id))
	if index < 0 || call.Ellipsis.IsValid() {
		return false
	}
	name, selector := "", false
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name, selector = f.Sel.Name, true
	}
	switch {
	case len(u.functions[name]) > 0:
		return u.passes(passing{name, index, kind})
	case selector && kind == Context && strings.HasPrefix(name, "With"):
		return u.derives()
	}
	return u.foreign(call) || kind == Context && selector && sends(name)
}

// derives reports whether what the call at hand gives gets names that are looked
// at too.
func (u *uses) derives() bool {
	assign, ok := u.parent(1).(*ast.AssignStmt)
	if !ok {
		return false
	}
	for _, e := range assign.Lhs {
		id, ok := e.(*ast.Ident)
		if !ok {
			return false
		}
		if _, known := u.kinds[id.Name]; !known && id.Name != "_" {
			u.kinds[id.Name] = Context
			u.renamed = true
		}
	}
	return true
}

// reassigned reports whether an assignment gives a name of a context another that
// is derived from it.
func (u *uses) reassigned(n *ast.AssignStmt) bool {
	if len(n.Rhs) != 1 {
		return false
	}
	call, ok := n.Rhs[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	return ok && strings.HasPrefix(s.Sel.Name, "With")
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
			if len(u.functions[n.Sel.Name]) > 0 { // may be a method
				call, ok := u.parent(up + 1).(*ast.CallExpr)
				return ok && call.Fun == n && u.passes(passing{n.Sel.Name, receiver, Message})
			}
			followed = true
		case *ast.IndexExpr:
			if n.X != child {
				return followed
			}
		case *ast.SliceExpr:
			return n.X != child && followed // of an array it is an address
		case *ast.UnaryExpr:
			if n.Op != token.AND {
				return followed
			}
			call, ok := u.parent(up + 1).(*ast.CallExpr)
			return ok && u.foreign(call)
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
