package bind

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec/finding"
)

// One mistake must give one finding. If a name in the topology is wrong, names that depend on
// it seem wrong too. The functions below find the cause, so that its finding suggests the fix
// and the dependent findings are omitted.

// handlerPrefix begins the names of handlers.
const handlerPrefix = "Receive"

// lookupSteps is the cost of one lookup of a method, in steps of binder.near.
const lookupSteps = 64

// messageType finds the type of a message. It reports an invalid type and returns nil.
func (b *binder) messageType(name, alias string, m mention) types.Type {
	before := len(b.findings)
	t := b.resolve(finding.MessageType, "message "+strconv.Quote(name), alias, m.ref, m.at, func() string { return b.handlerTypeHint(name, m) })
	switch {
	case t == nil:
		b.renamedMessages[name] = len(b.findings) > before && !b.listed[m.ref.Name]
	case m.listed:
		if other := b.commonHandlerType(name, t); other != nil {
			b.at(finding.MessageType, m.at, b.typeHint(name, other), "message %q is %s in the topology file, but its handlers take %s", name, m.at.Value, b.expression(other))
			b.renamedMessages[name] = true
			return nil
		}
	}
	b.copied("message "+name, "write "+strconv.Quote(name+": *"+m.at.Value)+" under messages", t, m.at)
	return t
}

// handlerTypeHint suggests the type that the handlers of a message take, for a message
// whose type in the topology is not declared.
func (b *binder) handlerTypeHint(name string, m mention) string {
	t := b.commonHandlerType(name, nil)
	switch {
	case t == nil:
		return ""
	case m.listed:
		return b.typeHint(name, t)
	}
	ref, problem := b.typeRef(t)
	if problem != "" {
		return b.typeHint(name, t)
	}
	text := ref.String()
	if token.IsIdentifier(text) {
		return fmt.Sprintf("did you mean %s, which its handlers take? Otherwise write %q under messages", text, name+": "+text)
	}
	return fmt.Sprintf("its handlers take %s: write %q under messages", text, name+": "+text)
}

// commonHandlerType is the type that all handlers of a message take. It is nil if there are
// no handlers, if their types differ, or if one of them takes t.
func (b *binder) commonHandlerType(message string, t types.Type) (taken types.Type) {
	if b.edgesOf == nil {
		b.edgesOf = make(map[string][]int)
		for i := range b.plan.Edges {
			if e := &b.plan.Edges[i]; e.From >= 0 && !e.DeadLetter {
				b.edgesOf[e.Message] = append(b.edgesOf[e.Message], i)
			}
		}
	}
	for _, e := range b.edgesOf[message] {
		param := b.firstParam(b.handler(b.checked.lookup(processorPrefix+strconv.Itoa(b.plan.Edges[e].To)), e))
		if param == nil {
			continue
		}
		if t != nil && (types.Identical(param, t) || types.Identical(param, types.NewPointer(t))) {
			return nil
		}
		if p, ok := types.Unalias(param).(*types.Pointer); ok {
			param = p.Elem()
		}
		if !known(param) || taken != nil && !types.Identical(taken, param) {
			return nil
		}
		taken = param
	}
	return taken
}

// handler is the method of t that handles the messages of edge e; nil if there is none.
func (b *binder) handler(t types.Type, e int) *types.Func {
	for _, name := range b.plan.Handlers(e) {
		if f := b.method(t, name); f != nil {
			return f
		}
	}
	return nil
}

// firstParam is the type of the first parameter after the context; nil if there is none.
func (b *binder) firstParam(f *types.Func) types.Type {
	if f == nil {
		return nil
	}
	for v := range f.Signature().Params().Variables() {
		if (b.context == nil || !types.Identical(v.Type(), b.context)) && !isDurableContext(v.Type()) {
			return v.Type()
		}
	}
	return nil
}

// expression returns a type in the notation of the topology file, or in that of Go if the type has
// no name.
func (b *binder) expression(t types.Type) string {
	if ref, problem := b.typeRef(t); problem == "" {
		return ref.String()
	}
	return b.typeText(t)
}

// typeHint suggests the type t for a message under messages. The topology file cannot name a type
// without a name, such as a function, so the hint is to declare an alias in Go.
func (b *binder) typeHint(message string, t types.Type) string {
	ref, problem := b.typeRef(t)
	switch {
	case problem == "":
		return "did you mean " + ref.String() + "?"
	case !strings.HasSuffix(problem, plan.Nameless) || !token.IsExported(message):
		return ""
	}
	return fmt.Sprintf("its handlers take a type without a name: declare %q in Go, and let the message have this type", "type "+message+" = "+b.typeText(t))
}

// renamedType suggests a type with the methods that a processor needs, for a processor whose
// type is not declared: the processor or the type was probably renamed.
func (b *binder) renamedType(s *subject) string {
	if s.Type.Import != "" || len(s.Type.Args) > 0 || b.inExcludedFile("", "", s.Type.Name) != "" {
		return ""
	}
	used := b.used[finding.ProcessorType]
	scope := b.checked.pkg.Scope()
	var found []string
	for _, name := range b.typeNames(scope, finding.ProcessorType) {
		if !b.near.Spend(lookupSteps * (1 + len(s.Incoming))) {
			break
		}
		if object := scope.Lookup(name).(*types.TypeName); !used[name] && b.serves(s, object.Type()) {
			found = append(found, name)
		}
	}
	name := b.near.Nearest(s.Type.Name, found)
	if len(found) == 1 {
		name = found[0]
	}
	if name == "" {
		return ""
	}
	b.renamed[s.index] = name
	if s.file.Type.Value != "" {
		return "did you mean " + name + "? It has the methods of this processor"
	}
	return fmt.Sprintf("type %s has the methods: write %q", name, "type: "+name)
}

// serves reports whether t has the methods that the edges of a processor need.
func (b *binder) serves(s *subject, t types.Type) bool {
	named, ok := t.(*types.Named) // not an alias
	if !ok || named.TypeParams().Len() > 0 || types.IsInterface(t) {
		return false
	}
	if s.Source() {
		return b.method(t, "Ping") != nil || b.method(t, "Serve") != nil
	}
	handles := false
	for _, e := range s.Incoming {
		if !b.plan.Edges[e].Optional {
			if handles = b.handler(t, e) != nil; !handles {
				return false
			}
		}
	}
	return handles
}

// suggestHandler is the suggestion for a missing handler that exists in an excluded file or
// under another name; else "".
func (b *binder) suggestHandler(s *subject, names []string, want form) string {
	if where := b.inExcludedFile(s.Type.Import, s.Type.Name, names...); where != "" {
		return where
	}
	f, name := b.misspelledHandler(s, names, want)
	if f == nil {
		return ""
	}
	s.suggested[f.Name()] = true
	return fmt.Sprintf("rename its method %s to %s", f.Name(), name)
}

// ambiguous says which embedded fields of t have one of the methods, if Go promotes none of
// them because there are several; else "".
func ambiguous(t types.Type, names []string, pkg *types.Package) string {
	for _, name := range names {
		object, index, _ := types.LookupFieldOrMethod(t, true, pkg, name)
		u, ok := t.Underlying().(*types.Struct)
		if object != nil || index == nil || !ok {
			continue
		}
		var fields []string
		for f := range u.Fields() {
			if found, within, _ := types.LookupFieldOrMethod(f.Type(), true, pkg, name); f.Embedded() && (found != nil || within != nil) {
				fields = append(fields, f.Name())
			}
		}
		return fmt.Sprintf("must have its own method %s: the methods of its embedded %s are ambiguous", name, strings.Join(fields, " and "))
	}
	return ""
}

// misspelledHandler finds the method of a processor's type that should probably have one of
// the names: a method with a similar name, or else the only handler that no edge needs and
// that has the form want.
func (b *binder) misspelledHandler(s *subject, names []string, want form) (f *types.Func, name string) {
	if s.wanted == nil {
		s.wanted = b.wanted(s)
	}
	var candidates []*types.Func
	for f := range s.t.(*types.Named).Methods() {
		if !b.near.Spend(lookupSteps) {
			return nil, ""
		}
		if !s.wanted[f.Name()] && !s.suggested[f.Name()] {
			candidates = append(candidates, f)
		}
	}
	for _, name := range slices.Backward(names) {
		for _, f := range candidates {
			if b.nearHandler(name, []string{f.Name()}) != "" {
				return f, name
			}
		}
	}
	for _, candidate := range candidates {
		if !isHandlerName(candidate.Name()) {
			continue
		}
		if _, problem := b.compare(s, candidate, want); problem != nil {
			continue
		}
		if f != nil {
			return nil, ""
		}
		f = candidate
	}
	return f, names[len(names)-1]
}

// misspelledStart is the suggestion for a processor without inputs and without Ping or Serve, if
// its type has one method that only lacks one of these names; else "".
func (b *binder) misspelledStart(s *subject) (suggestion string) {
	if s.t == nil || s.starts || len(s.Incoming) > 0 {
		return ""
	}
	for f := range s.t.(*types.Named).Methods() {
		if !f.Exported() || !b.near.Spend(lookupSteps) {
			continue
		}
		for _, l := range s.lifecycle {
			if l.name != "Ping" && l.name != "Serve" {
				continue
			}
			m, problem := b.compare(s, f, l.want)
			if problem != nil || m.Out == plan.NoOut || m.Context != (l.name == "Serve") {
				continue
			}
			if suggestion != "" {
				return ""
			}
			suggestion = fmt.Sprintf("rename method %s to %s", f.Name(), l.name)
		}
	}
	return suggestion
}

// wanted are the names of methods that the runtime calls if they exist, for any processor
// with the type of s.
func (b *binder) wanted(s *subject) map[string]bool {
	names := make(map[string]bool)
	for _, l := range s.lifecycle {
		names[l.name] = true
	}
	for _, p := range b.sharing(s) {
		for _, e := range p.Incoming {
			for _, name := range b.plan.Handlers(e) {
				names[name] = true
			}
		}
	}
	return names
}

// isHandlerName reports whether a method has the name of a handler.
func isHandlerName(name string) bool {
	rest, ok := strings.CutPrefix(name, handlerPrefix)
	return ok && token.IsExported(rest)
}
