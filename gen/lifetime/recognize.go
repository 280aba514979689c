package lifetime

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// recognizer finds handlers in generated files.
type recognizer struct {
	pkg     *Package
	owned   map[string]bool // pointer types that are messages themselves: the receiver owns what they point to
	foreign []assertion     // handlers that other packages declare
}

// assertion is a handler of another package, and where it is asserted.
type assertion struct {
	handler Handler
	method  *types.Func
	pos     token.Pos
}

// home is the import path of the runtime.
const home = "github.com/topogen/topogen/runtime/"

func newRecognizer(pkg *Package) *recognizer {
	r := &recognizer{pkg: pkg, owned: make(map[string]bool)}
	for _, name := range pkg.Types.Scope().Names() {
		object, ok := pkg.Types.Scope().Lookup(name).(*types.TypeName)
		if !ok || !r.inGenerated(object.Pos()) {
			continue
		}
		named, ok := object.Type().(*types.Named)
		if !ok {
			continue
		}
		if s, ok := named.Underlying().(*types.Struct); ok {
			r.queued(s)
		}
		for m := range named.Methods() {
			if sends(m.Name()) {
				r.own(m.Signature().Params())
				r.own(m.Signature().Results())
			}
		}
	}
	return r
}

// queued notes the messages that fields queue.
func (r *recognizer) queued(s *types.Struct) {
	for f := range s.Fields() {
		named, ok := types.Unalias(f.Type()).(*types.Named)
		if !ok || named.Obj().Pkg() == nil || !strings.HasPrefix(named.Obj().Pkg().Path(), home) {
			continue
		}
		for t := range named.TypeArgs().Types() {
			r.ownType(t)
		}
	}
}

func (r *recognizer) own(list *types.Tuple) {
	for v := range list.Variables() {
		r.ownType(v.Type())
	}
}

func (r *recognizer) ownType(t types.Type) {
	if isPointer(t) {
		r.owned[types.TypeString(t, nil)] = true
	}
}

func (r *recognizer) inGenerated(pos token.Pos) bool {
	for file := range r.pkg.Generated {
		if file.FileStart <= pos && pos < file.FileEnd {
			return true
		}
	}
	return false
}

// handlers finds the lines "_ ParserProcessor = (*Parser)(nil)".
func (r *recognizer) handlers() (list []Handler) {
	for file := range r.pkg.Generated {
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				list = append(list, r.asserted(s.(*ast.ValueSpec))...)
			}
		}
	}
	return list
}

func (r *recognizer) asserted(s *ast.ValueSpec) (list []Handler) {
	id, ok := s.Type.(*ast.Ident)
	if !ok || !strings.HasSuffix(id.Name, "Processor") || len(s.Values) != 1 {
		return nil
	}
	object := r.pkg.Info.Uses[id]
	if object == nil || !r.inGenerated(object.Pos()) {
		return nil
	}
	iface, ok := object.Type().Underlying().(*types.Interface)
	if !ok {
		return nil
	}
	t := types.Unalias(r.pkg.Info.TypeOf(s.Values[0]))
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, ok := t.(*types.Named)
	if !ok {
		return nil
	}
	for m := range iface.Methods() {
		h, ok := r.handler(m, named.Obj().Name())
		if !ok {
			continue
		}
		found, _, _ := types.LookupFieldOrMethod(types.NewPointer(named), false, r.pkg.Types, m.Name())
		switch f, _ := found.(*types.Func); {
		case f == nil:
		case f.Pkg() == r.pkg.Types && named.Obj().Pkg() == r.pkg.Types:
			list = append(list, h)
		case f.Pkg() != r.pkg.Types:
			r.foreign = append(r.foreign, assertion{h, f.Origin(), s.Pos()})
		}
	}
	return list
}

// handler is what the method of an interface says of the method that it asks for.
func (r *recognizer) handler(m *types.Func, typ string) (Handler, bool) {
	h := Handler{Type: typ, Name: m.Name(), Message: None, Sender: None, Context: None}
	switch m.Name() {
	case "Init", "Close":
		return h, false
	case "Serve":
		h.Serves = true
	}
	for i := range m.Signature().Params().Len() {
		t := m.Signature().Params().At(i).Type()
		switch {
		case isContext(t) && i == 0:
			if !h.Serves {
				h.Context = i
			}
		case r.isSender(t):
			h.Sender = i
		case isPointer(t) && h.Message == None && !r.owned[types.TypeString(t, nil)]:
			h.Message = i
		}
	}
	return h, h.Message != None || h.Sender != None || h.Context != None
}

// isSender reports whether t is a pointer to a generated sender, or an interface
// with nothing but its methods.
func (r *recognizer) isSender(t types.Type) bool {
	if i, ok := t.Underlying().(*types.Interface); ok {
		for m := range i.Methods() {
			if !strings.HasPrefix(m.Name(), "Send") {
				return false
			}
		}
		return i.NumMethods() > 0
	}
	p, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	named, ok := types.Unalias(p.Elem()).(*types.Named)
	return ok && strings.HasSuffix(named.Obj().Name(), "Sender") && r.inGenerated(named.Obj().Pos())
}
