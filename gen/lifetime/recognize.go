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
	foreign []assertion     // handlers and methods of updates that other packages declare
}

// assertion is a handler of another package with the position of its assertion, or of the
// definition of its state machine.
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

// handlers finds the lines "_ ParserProcessor = (*Parser)(nil)" and the definitions of state
// machines.
func (r *recognizer) handlers() (list []Handler) {
	for _, file := range r.pkg.Generated {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				list = append(list, r.asserted(n)...)
			case *ast.Ident:
				list = append(list, r.defined(n)...)
			}
			return true
		})
	}
	return list
}

// defined returns the methods of the update if an identifier is fsm.Definition[State, Update, Result].
func (r *recognizer) defined(id *ast.Ident) (list []Handler) {
	object, args := r.pkg.Info.Uses[id], r.pkg.Info.Instances[id].TypeArgs
	if args.Len() != 3 || id.Name != "Definition" || object.Pkg().Path() != runtimePath+"fsm" {
		return nil
	}
	t := NamedOf(args.At(1))
	if t == nil {
		return nil
	}
	for m := range t.Methods() {
		switch h, ok := updates(m, t.Obj().Name()); {
		case !ok:
		case m.Pkg() == r.pkg.Types:
			list = append(list, h)
		default:
			r.foreign = append(r.foreign, assertion{h, m.Origin(), id.Pos()})
		}
	}
	return list
}

// updates returns the handler for a method that is or may be a method of an update of a state machine.
func updates(m *types.Func, typ string) (h Handler, ok bool) {
	s := m.Signature()
	switch m.Name() {
	case "Update", "UpdateAt", "Revert":
		ok = isPointer(s.Recv().Type()) && s.Params().Len() > 0 && isPointer(s.Params().At(0).Type())
	}
	return Handler{Type: typ, Name: m.Name(), Receiver: Update}, ok
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
