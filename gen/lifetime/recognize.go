package lifetime

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// recognizer finds handlers in generated files.
type recognizer struct {
	pkg     *Package
	owned   map[string]bool // pointer types that are messages; the receiver owns their targets
	foreign []assertion     // handlers that other packages declare
}

// assertion is a handler of another package with the position of its assertion.
type assertion struct {
	handler Handler
	method  *types.Func
	pos     token.Pos
}

// runtimePath begins the import paths of the runtime.
const runtimePath = "github.com/topogen/topogen/runtime/"

func newRecognizer(pkg *Package) *recognizer {
	r := &recognizer{pkg: pkg, owned: make(map[string]bool)}
	for _, name := range pkg.Types.Scope().Names() {
		object, ok := pkg.Types.Scope().Lookup(name).(*types.TypeName)
		if !ok || !pkg.inGenerated(object.Pos()) {
			continue
		}
		t := NamedOf(object.Type())
		if t == nil {
			continue
		}
		if s, ok := t.Underlying().(*types.Struct); ok {
			r.queued(s)
		}
		for m := range t.Methods() {
			if sends(m.Name()) {
				r.own(m.Signature().Params())
				r.own(m.Signature().Results())
			}
		}
	}
	return r
}

// queued records the message types of fields that are queues.
func (r *recognizer) queued(s *types.Struct) {
	for f := range s.Fields() {
		of := NamedOf(f.Type())
		if of == nil || of.Obj().Pkg() == nil || !strings.HasPrefix(of.Obj().Pkg().Path(), runtimePath) {
			continue
		}
		for t := range of.TypeArgs().Types() {
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

// handlers finds the lines "_ ParserProcessor = (*Parser)(nil)".
func (r *recognizer) handlers() (list []Handler) {
	for _, file := range r.pkg.Generated {
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
	if object == nil || !r.pkg.inGenerated(object.Pos()) {
		return nil
	}
	iface, ok := object.Type().Underlying().(*types.Interface)
	if !ok {
		return nil
	}
	t := NamedOf(r.pkg.Info.TypeOf(s.Values[0]))
	if t == nil {
		return nil
	}
	for m := range iface.Methods() {
		h := r.handler(m, t.Obj().Name())
		found, _, _ := types.LookupFieldOrMethod(t, true, r.pkg.Types, m.Name())
		switch f, _ := found.(*types.Func); {
		case f == nil:
		case f.Pkg() == r.pkg.Types && t.Obj().Pkg() == r.pkg.Types:
			list = append(list, h)
		case f.Pkg() != r.pkg.Types:
			r.foreign = append(r.foreign, assertion{h, f.Origin(), s.Pos()})
		}
	}
	return list
}

// handler derives a handler from a method of the asserted interface.
func (r *recognizer) handler(m *types.Func, typ string) Handler {
	h := Handler{Type: typ, Name: m.Name()}
	if h.Name == "Init" || h.Name == "Close" {
		return h // their context may be kept
	}
	for v := range m.Signature().Params().Variables() {
		kind, t := Other, v.Type()
		switch {
		case isContext(t):
			if len(h.Params) == 0 && h.Name != Serve {
				kind = Context
			}
		case r.isSender(t):
			kind = Sender
		case isPointer(t) && !slices.Contains(h.Params, Message) && !r.owned[types.TypeString(t, nil)]:
			kind = Message
		}
		h.Params = append(h.Params, kind)
	}
	return h
}

// isSender reports whether t is a pointer to a generated sender, or an interface with only
// methods of a sender.
func (r *recognizer) isSender(t types.Type) bool {
	if i, ok := t.Underlying().(*types.Interface); ok {
		for m := range i.Methods() {
			if !strings.HasPrefix(m.Name(), "Send") {
				return false
			}
		}
		return i.NumMethods() > 0
	}
	n := NamedOf(t)
	return n != nil && strings.HasSuffix(n.Obj().Name(), "Sender") && r.pkg.inGenerated(n.Obj().Pos())
}

func isPointer(t types.Type) bool {
	_, ok := types.Unalias(t).(*types.Pointer)
	return ok
}
