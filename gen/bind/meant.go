package bind

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

// One mistake gives one finding. A name that is wrong in the topology makes others
// look wrong that depend on it: what follows here finds the cause, so that its
// finding suggests the repair and the others are left out.

// handlerPrefix begins the names of handlers.
const handlerPrefix = "Receive"

// lookupSteps is what a look at the methods of a type counts as, in the unit of near.
const lookupSteps = 64

// messageType finds the type of a message; nil where it is wrong, which is reported.
func (b *binder) messageType(name, alias string, m mention) types.Type {
	before := len(b.findings)
	t := b.resolve(finding.MessageType, "message "+strconv.Quote(name), alias, m.ref, m.at, func() string { return b.takenInstead(name, m) })
	switch {
	case t == nil:
		b.misnamed[name] = len(b.findings) > before && !b.listed[m.ref.Name]
	case m.listed:
		if other := b.agreed(name, t); other != nil {
			text := b.expression(other)
			b.at(finding.MessageType, m.at, "did you mean "+text+"?", "message %q is %s in the topology file, but its handlers take %s", name, m.at.Value, text)
			b.misnamed[name] = true
			return nil
		}
	}
	b.copied("message "+name, "write under messages "+strconv.Quote(name+": *"+m.at.Value), t, m.at)
	return t
}

// takenInstead suggests the type that the handlers of a message take, where the one
// that the topology names is not declared.
func (b *binder) takenInstead(name string, m mention) string {
	t := b.agreed(name, nil)
	switch {
	case t == nil:
		return ""
	case m.listed:
		return "did you mean " + b.expression(t) + "?"
	}
	return fmt.Sprintf("its handlers take %s: write under messages %q", b.expression(t), name+": "+b.expression(t))
}

// agreed is the type that all handlers of a message take; nil where there is none,
// where they differ, and where one takes the message as t.
func (b *binder) agreed(message string, t types.Type) (taken types.Type) {
	if b.carriers == nil {
		b.carriers = make(map[string][]int)
		for i := range b.plan.Edges {
			if e := &b.plan.Edges[i]; e.From >= 0 && !e.DeadLetter {
				b.carriers[e.Message] = append(b.carriers[e.Message], i)
			}
		}
	}
	for _, e := range b.carriers[message] {
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

// handler is the method of t that receives what edge e carries; nil if none.
func (b *binder) handler(t types.Type, e int) *types.Func {
	for _, name := range b.plan.Handlers(e) {
		if f := b.method(t, name); f != nil {
			return f
		}
	}
	return nil
}

// firstParam is the type of the first parameter behind the context; nil if none.
func (b *binder) firstParam(f *types.Func) types.Type {
	if f == nil {
		return nil
	}
	for v := range f.Signature().Params().Variables() {
		if b.context == nil || !types.Identical(v.Type(), b.context) {
			return v.Type()
		}
	}
	return nil
}

// expression is a type as the topology writes it.
func (b *binder) expression(t types.Type) string {
	if ref, problem := b.typeRef(t); problem == "" {
		return ref.String()
	}
	return b.typeText(t)
}

// renamedType suggests the type that has the methods of a processor whose own is not
// declared: the processor was renamed, or the type.
func (b *binder) renamedType(s *subject) string {
	if s.Type.Import != "" || len(s.Type.Args) > 0 || b.elsewhere("", "", s.Type.Name) != "" {
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
		return "did you mean " + name + "? It has the methods"
	}
	return fmt.Sprintf("type %s has the methods: write %q", name, "type: "+name)
}

// serves reports whether t has what the edges of a processor ask for.
func (b *binder) serves(s *subject, t types.Type) bool {
	named, ok := t.(*types.Named) // which an alias is not
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

// handlerMeant suggests what to do about a missing handler where one is there in some
// way: in a file that is left out, or under another name; else "".
func (b *binder) handlerMeant(s *subject, names []string, want form) string {
	if where := b.elsewhere(s.Type.Import, s.Type.Name, names...); where != "" {
		return where
	}
	f, name := b.misspelledHandler(s, names, want)
	if f == nil {
		return ""
	}
	s.meant[f.Name()] = true
	return fmt.Sprintf("rename its method %s to %s", f.Name(), name)
}

// ambiguous says which embedded fields of t have one of the methods, where Go promotes
// none of them because there are several; "" if that is not so.
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

// misspelledHandler finds the method of a processor's type that was probably meant to
// have one of the names: a method whose spelling is near, or else the only handler that
// no edge asks for and that has the wanted form.
func (b *binder) misspelledHandler(s *subject, names []string, want form) (f *types.Func, name string) {
	if s.wanted == nil {
		s.wanted = b.wanted(s)
	}
	var candidates []*types.Func
	for f := range s.t.(*types.Named).Methods() {
		if !b.near.Spend(lookupSteps) {
			return nil, ""
		}
		if !s.wanted[f.Name()] && !s.meant[f.Name()] {
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

// wanted are the names of methods that the runtime would call, for any processor that
// has the type.
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

// isHandlerName reports whether a method is named as handlers are.
func isHandlerName(name string) bool {
	rest, ok := strings.CutPrefix(name, handlerPrefix)
	return ok && token.IsExported(rest)
}
