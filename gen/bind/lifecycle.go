package bind

import (
	"fmt"
	"go/types"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec/finding"
)

// lifecycle is an optional method that the runtime calls, other than handlers of messages.
type lifecycle struct {
	name     string
	want     form
	to       **plan.Method // where to store the bound method; nil: the runtime does not call it
	ofInputs bool          // it is called for changes of inputs
}

// Names of methods with special rules.
const (
	processorRestarted = "ProcessorRestarted"
	inputs             = "Inputs" // takes the tracker of inputs
)

// lifecycleOf lists all lifecycle methods. The form of a method is complete only if the runtime
// calls the method for this processor.
func (b *binder) lifecycleOf(s *subject) []lifecycle {
	inputText, trackerText := s.Ident+"Input", s.Ident+"Inputs"
	input, tracker := b.checked.lookup(inputText), b.checked.lookup(trackerText)
	one := form{context: optional, message: input, value: true, text: inputText, event: true, out: optional, err: optional}
	restarted := form{context: optional, message: b.index, value: true, text: "ProcessorIndex", event: true, out: optional, err: optional}
	all := form{context: optional, none: []types.Type{input, tracker}, out: optional, err: optional}
	list := []lifecycle{
		{"Ping", form{context: optional, out: optional, err: required}, &s.Ping, false},
		{"Serve", form{context: required, out: required, err: required}, &s.Serve, false},
		{"Finish", form{context: optional, out: optional, err: optional}, &s.Finish, false},
		{"Init", form{context: optional, err: required}, &s.Init, false},
		{"Close", form{err: required}, &s.Close, false},
		{"InputClosed", one, &s.InputClosed, true},
		{"InputRecovered", one, &s.InputRecovered, true},
		{processorRestarted, restarted, &s.ProcessorRestarted, true},
		{"AllInputsClosed", all, &s.AllInputsClosed, true},
		{inputs, form{message: types.NewPointer(tracker), value: true, text: "*" + trackerText, event: true}, &s.Track, true},
	}
	for i := range list {
		// A type can only be missing because its name is taken, which has a finding already.
		if l := &list[i]; l.ofInputs && (s.Inputs == nil || input == nil || tracker == nil) || l.name == processorRestarted && b.index == nil {
			l.to = nil
		}
	}
	return list
}

// bindLifecycle binds the methods that a processor may have.
func (b *binder) bindLifecycle(s *subject) {
	for _, l := range s.lifecycle {
		f := b.method(s.t, l.name)
		switch {
		case f == nil, l.to == nil, !l.ofInputs && b.foreignLifecycle(s, f):
			continue
		case l.name == inputs && !mentions(f, b.checked.lookup(s.Ident+"Inputs")):
			continue // an unrelated method with the same name
		}
		s.called[l.name] = true
		l.want.canonical = b.canonicalLifecycle(s, l)
		if m, ok := b.match(s, f, l.want); ok {
			*l.to = &m
		}
	}
	ping, serve := s.called["Ping"], s.called["Serve"]
	s.starts = ping || serve
	switch {
	case !serve:
	case ping:
		b.at(finding.MethodsExclude, s.file.Name, "remove one of them", "type %s of processor %q must have Ping or Serve, not both", s.Type.Name, s.Name)
	case len(s.Incoming) > 0:
		b.at(finding.MethodsExclude, s.file.Name, "use Ping, or split the processor",
			"type %s of processor %q must not have Serve, because the processor has an input: %s",
			s.Type.Name, s.Name, b.plan.EdgeText(s.Incoming[0]))
	}
}

// foreignLifecycle reports a lifecycle method that is promoted from an embedded type of
// another package. Such a type is not written for topologies: *sql.DB has Ping and Close,
// and would turn every processor that embeds it into a source.
func (b *binder) foreignLifecycle(s *subject, f *types.Func) bool {
	named := s.t.(*types.Named)
	if f.Pkg() == named.Obj().Pkg() {
		return false
	}
	receiver := b.typeText(f.Signature().Recv().Type())
	b.at(finding.ForeignLifecycle, s.file.Name, fmt.Sprintf("hold the %s in a field with a name, or give %s a method %s of its own", receiver, s.Type.Name, f.Name()),
		"type %s of processor %q has the method %s of an embedded %s, and the runtime would call it", s.Type.Name, s.Name, f.Name(), receiver)
	return true
}
