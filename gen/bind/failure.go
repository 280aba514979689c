package bind

import (
	"fmt"
	"go/types"

	"github.com/topogen/topogen/gen/plan"
)

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
		{"InputClosed", form{message: input, text: s.Ident + "Input"}, &s.InputClosed},
		{"InputRecovered", form{message: input, text: s.Ident + "Input"}, &s.InputRecovered},
		{"ProcessorRestarted", form{message: b.index, text: "ProcessorIndex"}, &s.ProcessorRestarted},
		{"AllInputsClosed", form{}, &s.AllInputsClosed},
	}
	for _, o := range list {
		f := b.method(s, o.name)
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
	if f := b.method(s, "Inputs"); f != nil && b.takesTracker(f, tracker) {
		s.called["Inputs"] = true
		s.Track = &plan.Method{Name: "Inputs"}
	}
}

// unheard finds methods that would hear what becomes of inputs, if the file said
// anything of it.
func (b *binder) unheard(s *subject) {
	for _, name := range []string{"InputClosed", "InputRecovered", "ProcessorRestarted", "AllInputsClosed"} {
		f := b.method(s, name)
		if f == nil || s.called[name] || !b.own(f.Pos()) {
			continue
		}
		suggestion, why := "write input_timeout at one of its edges, or restart, health or on_error at what sends to it", "the file does not say what becomes of the inputs of"
		if name == "ProcessorRestarted" {
			suggestion, why = "write restart at what sends to it", "nothing is restarted that sends to"
		}
		b.atGo("TG411", f.Pos(), name, suggestion, "method %s of %s is never called: %s processor %q", name, s.Type.Name, why, s.Name)
	}
}

// takesTracker reports whether f is the method that takes the tracker. A method
// Inputs of another form is the user's own affair.
func (b *binder) takesTracker(f *types.Func, tracker types.Type) bool {
	sig := f.Signature()
	if sig.Params().Len() != 1 || sig.Results().Len() != 0 {
		return false
	}
	if !whole(sig) && b.unsure() {
		return false
	}
	return types.Identical(sig.Params().At(0).Type(), types.NewPointer(tracker))
}

// canonicalHears is the form of such a method that we suggest.
func (b *binder) canonicalHears(s *subject, name, param string) Method {
	var params []string
	switch param {
	case "":
	case "ProcessorIndex":
		params = []string{"p " + param}
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
		if w == nil || e.From < 0 || e.DeadLetter || w.Isolated || w.Attempts < 2 && !(w.Timeout > 0 && w.DeadLetter >= 0) {
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
		if e.CloneAgain = clone; clone || i >= len(b.topology.Edges) || b.topology.Edges[i].Shared {
			continue
		}
		why := fmt.Sprintf("%q makes up to %d attempts at it, each with a copy of its own", b.plan.Processors[e.To].Name, w.Attempts)
		if w.Attempts < 2 {
			why = fmt.Sprintf("a handler of %q that hangs may still use it when it is a dead letter", b.plan.Processors[e.To].Name)
		}
		b.at("TG307", b.topology.Edges[i].Message,
			fmt.Sprintf("give %s a method Clone() %s, or say shared: true where it goes", e.Message, b.typeText(t)),
			"message %s holds pointers (%s), and %s%s", e.Message, path, why, problem)
	}
}
