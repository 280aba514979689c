package bind

import (
	"fmt"
	"go/types"
	"slices"
	"strconv"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// subject is a processor that is being bound.
type subject struct {
	*plan.Processor
	*plan.Calls // the result
	index       int
	file        *spec.Processor
	t           types.Type      // nil: not declared
	sender      types.Type      // pointer to the sender; nil: sends nothing
	starts      bool            // has Ping or Serve
	reported    map[string]bool // methods that have a finding
	missing     Missing
	lifecycle   []lifecycle
	*calls
}

// calls has facts about the methods of a type, for all processors that have this type.
type calls struct {
	called    map[string]bool // methods that the runtime calls, or that have a finding about that
	suggested map[string]bool // methods that a finding suggests to rename
	wanted    map[string]bool // methods that the runtime calls if they exist; nil until needed
}

// processor binds one processor: its type, its methods, its constructor. It reports
// whether the processor may send before it receives a message.
func (b *binder) processor(i int) (starts bool) {
	if m := b.plan.Processors[i].Machine; m != nil {
		return m.Controller < 0 // without a controller, callers propose the updates
	}
	s := &subject{
		Processor: &b.plan.Processors[i],
		Calls:     &b.Facts.Processors[i].Calls,
		index:     i,
		file:      &b.topology.Processors[i],
		reported:  make(map[string]bool),
	}
	s.sender = b.checked.senderType(s.Processor)
	s.lifecycle = b.lifecycleOf(s)
	s.missing = Missing{Processor: i, Type: s.Type.Name, Import: s.Type.Import}
	defer func() { b.lack(s.missing) }()
	before := len(b.findings)
	s.t = b.processorType(s)
	if s.t == nil {
		// The type has a finding already, but scaffolding also needs the methods.
		s.missing.Declare = s.Type.Import == "" && len(s.Type.Args) == 0 && b.declared[s.Type.Name] == nil && before < len(b.findings) && b.renamed[i] == ""
		if s.missing.Declare {
			if name := s.file.New.Value; name != "" && b.checked.pkg.Scope().Lookup(name) == nil {
				s.missing.New = b.canonicalNew(s)
			}
			for _, e := range s.Incoming {
				if !b.plan.Edges[e].Optional {
					b.missingReceive(s, e, form{})
				}
			}
			if s.Source() {
				s.missing.Methods = append(s.missing.Methods, b.canonicalLifecycle(s, s.lifecycle[0]))
			}
		}
		return true // unknown: the type was not found
	}
	object := s.t.(*types.Named).Obj()
	if object.Pkg() != b.checked.pkg { // the type is an alias
		s.missing.Type, s.missing.Import = object.Name(), object.Pkg().Path()
	}
	if s.calls = b.calls[object]; s.calls == nil {
		s.calls = &calls{called: make(map[string]bool), suggested: make(map[string]bool)}
		b.calls[object] = s.calls
	}
	for _, e := range s.Incoming {
		b.receive(s, e)
	}
	b.bindLifecycle(s)
	b.constructor(s)
	b.subjects = append(b.subjects, s)
	return s.starts
}

// sharing lists the processors that have the type of s, including s.
func (b *binder) sharing(s *subject) []*plan.Processor {
	name := func(t *plan.TypeRef) string { return t.Import + "." + t.Name }
	if b.ofType == nil {
		b.ofType = make(map[string][]*plan.Processor)
		for i := range b.plan.Processors {
			if p := &b.plan.Processors[i]; !p.External && p.Machine == nil {
				b.ofType[name(&p.Type)] = append(b.ofType[name(&p.Type)], p)
			}
		}
	}
	return b.ofType[name(&s.Type)]
}

// lack records missing declarations. If processors share a type, its missing methods are in
// one entry.
func (b *binder) lack(m Missing) {
	key := m.Import + "." + m.Type
	if first, ok := b.lacking[key]; ok {
		other := &b.Missing[first]
		m.Declare = false
		if m.New != nil && other.New != nil && m.New.Name == other.New.Name {
			m.New = nil
		}
		for _, method := range m.Methods {
			if !slices.ContainsFunc(other.Methods, func(o Method) bool { return o.Name == method.Name }) {
				other.Methods = append(other.Methods, method)
			}
		}
		m.Methods = nil
	}
	if m.Declare || m.New != nil || len(m.Methods) > 0 {
		b.lacking[key] = len(b.Missing)
		b.Missing = append(b.Missing, m)
	}
}

// processorType finds the type of a processor; nil if it is invalid.
func (b *binder) processorType(s *subject) types.Type {
	at := s.file.Type
	if at.Value == "" {
		at = s.file.Name
	}
	t := b.resolve(finding.ProcessorType, "processor "+strconv.Quote(s.Name), processorPrefix+strconv.Itoa(s.index), s.Type, at, func() string { return b.renamedType(s) })
	if t == nil {
		return nil
	}
	name := s.Type.Name
	switch t.Underlying().(type) {
	case *types.Interface:
		b.at(finding.ProcessorType, at, "", "the type of processor %[2]q must be a concrete type, got the interface %[1]s", name, s.Name)
		return nil
	case *types.Pointer:
		b.at(finding.ProcessorType, at, "", "the type of processor %[2]q must not be a pointer, got %[1]s", name, s.Name)
		return nil
	}
	if _, ok := t.(*types.Named); !ok {
		b.at(finding.ProcessorType, at, "", "the type of processor %[2]q must have methods, got %[1]s, which is %[3]s", name, s.Name, b.typeText(t))
		return nil
	}
	return t
}

// receive binds the handler of an edge.
func (b *binder) receive(s *subject, e int) {
	edge := &b.plan.Edges[e]
	entry := plan.Receive{Edge: e}
	defer func() { s.Receives = append(s.Receives, entry) }()
	f := b.handler(s.t, e)
	want := form{context: optional, out: optional, err: optional}
	switch {
	case edge.From < 0:
		want.message, want.value, want.text = b.tick, true, "topo.Tick"
	case edge.DeadLetter:
		want.message, want.text = b.deadLetter, "topo.DeadLetter"
	default:
		want.message, want.text = b.messageTypes[edge.Message], edge.Type.Format(b.qualifier)
	}
	if edge.Durable != nil {
		want.durable, want.context, want.err = b.plan.EdgeText(e), never, required
	}
	if edge.Reply != "" {
		want.reply, want.replyText = b.messageTypes[edge.Reply], edge.ReplyType.Format(b.qualifier)
	}
	if f == nil {
		if !edge.Optional {
			b.missingReceive(s, e, want)
		}
		return
	}
	s.called[f.Name()] = true
	if want.message == nil || edge.Reply != "" && want.reply == nil {
		return // the message has a finding already
	}
	want.canonical = b.canonical(s, e, b.ownName(s, e, f.Name()))
	if m, ok := b.match(s, f, want); ok {
		entry.Method = m
	}
}

// ownName is the name that a handler of edge e should have if its signature must change. A durable
// edge and another one cannot share a handler, so each of them needs the name with the sender.
func (b *binder) ownName(s *subject, e int, name string) string {
	edge := &b.plan.Edges[e]
	for _, other := range s.Incoming {
		if o := &b.plan.Edges[other]; o.From >= 0 && edge.From >= 0 && o.Message == edge.Message && (o.Durable != nil) != (edge.Durable != nil) {
			return b.plan.Handlers(e)[0]
		}
	}
	return name
}

// missingReceive reports that an edge has no handler. Edges that need the same method have one
// finding. If the message or the method only has a wrong name, no handler is missing.
func (b *binder) missingReceive(s *subject, e int, want form) {
	edge := &b.plan.Edges[e]
	names := b.plan.Handlers(e)
	name := names[len(names)-1]
	if edge.ReplyOf >= 0 {
		name = names[0] // the name with the sender tells a reply from other messages of its type
	}
	name = b.ownName(s, e, name)
	method := b.canonical(s, e, name)
	if s.reported[name] {
		return
	}
	s.reported[name] = true
	unknown := b.untyped(e)
	if unknown && b.renamedMessages[edge.Message] {
		return
	}
	repair := ""
	if s.t != nil && !unknown {
		repair = b.suggestHandler(s, names, want)
	}
	if repair == "" {
		repair = method.suggestion(s.missing.Import)
		s.missing.Methods = append(s.missing.Methods, method)
	}
	if s.t == nil || unknown {
		return
	}
	at, text := b.lacks(e, names)
	if both := ambiguous(s.t, names, b.checked.pkg); both != "" {
		text = both
	}
	b.at(finding.MethodMissing, at, repair, "type %s %s", s.Type.Name, text)
}

// lacks names the method that an edge needs, and the place in the topology.
func (b *binder) lacks(e int, names []string) (at spec.Text, text string) {
	edge := &b.plan.Edges[e]
	if edge.DeadLetter {
		from := b.topology.Processors[edge.From]
		return from.OnError.DeadLetter, fmt.Sprintf("has no method ReceiveDeadLetter for the dead letters of %q", from.Name.Value)
	}
	declared := &b.topology.Edges[declaredAs(edge, e)]
	at = spec.Text{At: declared.At, Pointer: declared.Pointer}
	switch {
	case edge.From < 0:
		return at, "has no method " + names[0] + " for the timer"
	case edge.ReplyOf >= 0:
		return at, fmt.Sprintf("has no method %s for the reply of %q", names[0], b.plan.Processors[edge.From].Name)
	}
	return at, fmt.Sprintf("has no method that receives %s from %q (%s or %s)", edge.Message, b.plan.Processors[edge.From].Name, names[1], names[0])
}

// untyped reports whether the message type of edge e is unknown. Then it has a finding.
func (b *binder) untyped(e int) bool {
	edge := &b.plan.Edges[e]
	return edge.From >= 0 && !edge.DeadLetter && b.messageTypes[edge.Message] == nil
}

// warnings finds handlers that are never called; usually they are misspelt. All processors
// must be bound before, because several may share a type.
func (b *binder) warnings(s *subject) {
	if b.topology.Partial {
		return // the edge that needs the method may be missing because of an error
	}
	named := s.t.(*types.Named)
	var wanted []string
	unknown := false // an edge has a message of unknown type, which an uncalled handler may take
	for _, e := range s.Incoming {
		if b.untyped(e) {
			unknown = true
			continue
		}
		wanted = append(wanted, b.plan.Handlers(e)...)
	}
	for i := range named.NumMethods() {
		f := named.Method(i)
		name := f.Name()
		if !isHandlerName(name) || s.called[name] || s.suggested[name] || !b.own(f.Pos()) {
			continue
		}
		suggestion := ""
		if near := b.nearHandler(name, wanted); near != "" {
			suggestion = "did you mean " + near + "?"
		}
		if unknown && suggestion == "" {
			continue
		}
		s.called[name] = true // prevents a second finding
		if slices.Contains(wanted, name) {
			b.atGo(finding.NeverCalled, f.Pos(), name, suggestion, "method %s of %s is never called: each edge has a handler with a longer name, which is called instead", name, s.Type.Name)
		} else {
			b.atGo(finding.NeverCalled, f.Pos(), name, suggestion, "method %s of %s is never called: no edge to processor %q carries such a message", name, s.Type.Name, s.Name)
		}
	}
	b.uncalledInputHandlers(s)
	b.misspeltInputHandlers(s)
}
