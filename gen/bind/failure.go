package bind

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// The methods by which a processor hears what becomes of its inputs.
const (
	inputClosed        = "InputClosed"
	inputRecovered     = "InputRecovered"
	processorRestarted = "ProcessorRestarted"
	allInputsClosed    = "AllInputsClosed"
	inputs             = "Inputs" // takes the tracker
)

var hearing = []string{inputClosed, inputRecovered, processorRestarted, allInputsClosed}

// misspeltMax is how many letters of a name may be wrong, or too many as in
// OnInputClosed: with more it is a name of the user's own.
const misspeltMax = 2

// hears binds the methods by which a processor hears what becomes of its inputs.
func (b *binder) hears(s *subject) {
	if s.Inputs == nil {
		return
	}
	input, tracker := b.checked.lookup(s.Ident+"Input"), b.checked.lookup(s.Ident+"Inputs")
	if input == nil || tracker == nil {
		return // the name is taken, which has a finding of its own
	}
	list := []struct {
		name string
		want form
		to   **plan.Method
	}{
		{inputClosed, form{message: input, text: s.Ident + "Input", noun: "input"}, &s.InputClosed},
		{inputRecovered, form{message: input, text: s.Ident + "Input", noun: "input"}, &s.InputRecovered},
		{processorRestarted, form{message: b.index, text: "ProcessorIndex", noun: "index of the processor"}, &s.ProcessorRestarted},
		{allInputsClosed, form{none: []types.Type{input, tracker}}, &s.AllInputsClosed},
	}
	for _, o := range list {
		f := b.method(s.t, o.name)
		if f == nil || o.want.text == "ProcessorIndex" && b.index == nil {
			continue
		}
		s.called[o.name] = true
		o.want.value = true
		o.want.context, o.want.out, o.want.err = optional, optional, optional
		o.want.canonical = b.canonicalHears(s, o.name, o.want.text)
		if m, ok := b.match(s, f, o.want); ok {
			*o.to = &m
		}
	}
	b.track(s, tracker)
}

// track binds the method that takes the tracker. A method Inputs that has nothing
// to do with it is the user's own affair.
func (b *binder) track(s *subject, tracker types.Type) {
	f := b.method(s.t, inputs)
	if f == nil || !mentions(f, tracker) {
		return
	}
	s.called[inputs] = true
	text := "*" + s.Ident + "Inputs"
	want := form{message: types.NewPointer(tracker), value: true, text: text, noun: "tracker"}
	want.canonical = Method{Name: inputs, Edge: -1, Signature: strings.TrimSpace(b.signature(s, inputs, []string{"in " + text}, ""))}
	if m, ok := b.match(s, f, want); ok {
		s.Track = &plan.Method{Name: m.Name}
	}
}

// mentions reports whether f has a parameter of type t, or of one that leads there.
func mentions(f *types.Func, t types.Type) bool {
	for v := range f.Signature().Params().Variables() {
		if leadsTo(v.Type(), t) {
			return true
		}
	}
	return false
}

// leadsTo reports whether t is of one of the types, or a pointer to or a slice of it.
func leadsTo(t types.Type, of ...types.Type) bool {
	switch u := types.Unalias(t).(type) {
	case *types.Pointer:
		t = u.Elem()
	case *types.Slice:
		t = u.Elem()
	}
	return slices.ContainsFunc(of, func(o types.Type) bool { return types.Identical(t, o) })
}

// unheard finds methods that would hear what becomes of inputs, if the file said
// anything of it.
func (b *binder) unheard(s *subject) {
	for _, name := range hearing {
		f := b.method(s.t, name)
		if f == nil || s.called[name] || !b.own(f.Pos()) {
			continue
		}
		suggestion, why := "write input_timeout at one of its edges, or restart, health or on_error at what sends to it", "the file does not say what becomes of the inputs of"
		if name == processorRestarted {
			suggestion, why = "write restart at what sends to it", "nothing is restarted that sends to"
		}
		s.called[name] = true // has its finding
		b.atGo(finding.NeverCalled, f.Pos(), name, suggestion, "method %s of %s is never called: %s processor %q", name, s.Type.Name, why, s.Name)
	}
}

// misspelt finds methods that are named nearly as one is that hears what becomes of
// inputs, where that one is missing.
func (b *binder) misspelt(s *subject) {
	if s.Inputs == nil {
		return
	}
	missing := slices.DeleteFunc(slices.Clone(hearing), func(name string) bool { return b.method(s.t, name) != nil })
	tracker := b.checked.lookup(s.Ident + "Inputs")
	tracks := tracker != nil && b.method(s.t, inputs) == nil
	for f := range s.t.(*types.Named).Methods() {
		if !f.Exported() || s.called[f.Name()] || !b.own(f.Pos()) {
			continue
		}
		meant := b.near.Nearest(f.Name(), missing)
		if meant != "" && spec.Edits(f.Name(), meant) > misspeltMax {
			meant = ""
		}
		if tracks && mentions(f, tracker) {
			meant = b.near.Nearest(f.Name(), []string{inputs})
		}
		if meant != "" {
			s.called[f.Name()] = true // has its finding
			b.atGo(finding.NeverCalled, f.Pos(), f.Name(), "did you mean "+meant+"?", "method %s of %s is never called: processor %q hears of its inputs by other names", f.Name(), s.Type.Name, s.Name)
		}
	}
}

// canonicalHears is the form of such a method that we suggest.
func (b *binder) canonicalHears(s *subject, name, param string) Method {
	var params []string
	switch param {
	case "":
	case "ProcessorIndex":
		params = []string{"restarted " + param} // p may be the receiver
	default:
		params = []string{"in " + param}
	}
	if out := b.outText(s); out != "" {
		params = append(params, out)
	}
	return Method{Name: name, Edge: -1, Signature: b.signature(s, name, params, "error")}
}

// attempts says which messages need a copy for each attempt at them: those that
// are handled more than once, and those that become dead letters while a handler
// that hangs still has them.
func (b *binder) attempts() {
	for i := range b.plan.Edges {
		e := &b.plan.Edges[i]
		w := b.plan.Processors[e.To].Watch
		if w == nil || e.From < 0 || e.DeadLetter || w.Isolated || w.Attempts < 2 && !(w.Abandons() && w.DeadLetter >= 0) {
			continue
		}
		t := b.messages[e.Message]
		if t == nil {
			continue
		}
		path := b.pointers(t)
		if path == "" {
			continue
		}
		clone, problem := b.clone(t)
		declared := i
		if e.ReplyOf >= 0 {
			declared = e.ReplyOf
		}
		if b.facts.Edges[i].CloneAgain = clone; clone || declared >= len(b.topology.Edges) || b.topology.Edges[declared].Shared {
			continue // or a machine's, which the file does not declare
		}
		at := b.topology.Edges[declared].Message
		if e.ReplyOf >= 0 {
			at = b.topology.Edges[declared].Reply
		}
		why := fmt.Sprintf("%q makes up to %d attempts at it, each with a copy of its own", b.plan.Processors[e.To].Name, w.Attempts)
		if w.Attempts < 2 {
			why = fmt.Sprintf("a handler of %q that hangs may still use it when it is a dead letter", b.plan.Processors[e.To].Name)
		}
		b.at(finding.SharedMemory, at,
			b.cloneAdvice(e.Message, t),
			"message %s holds pointers (%s), and %s%s", e.Message, path, why, problem)
	}
}
