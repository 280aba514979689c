package bind

import (
	"fmt"
	"go/types"
	"slices"

	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// misspeltMax is the number of wrong or additional letters in a misspelt name, as in
// OnInputClosed. A name that differs more is probably the name of an unrelated method.
const misspeltMax = 2

// mentions reports whether f has a parameter of type t, or of a type that refers to t.
func mentions(f *types.Func, t types.Type) bool {
	for v := range f.Signature().Params().Variables() {
		if leadsTo(v.Type(), t) {
			return true
		}
	}
	return false
}

// leadsTo reports whether t is one of the types, or a pointer to or a slice of one.
func leadsTo(t types.Type, of ...types.Type) bool {
	switch u := types.Unalias(t).(type) {
	case *types.Pointer:
		t = u.Elem()
	case *types.Slice:
		t = u.Elem()
	}
	return slices.ContainsFunc(of, func(o types.Type) bool { return types.Identical(t, o) })
}

// uncalledInputHandlers finds methods for changes of inputs, such as InputClosed, that are
// never called because the file declares no supervision for these inputs.
func (b *binder) uncalledInputHandlers(s *subject) {
	for _, l := range s.lifecycle {
		name, f := l.name, b.method(s.t, l.name)
		if !l.ofInputs || name == inputs || f == nil || s.called[name] || !b.own(f.Pos()) {
			continue
		}
		suggestion, why := "write input_timeout for one of its edges, or restart, health or on_error for a processor that sends to it", "the file declares no supervision for the inputs of"
		if name == processorRestarted {
			suggestion, why = "write restart for a processor that sends to it", "no processor with a restart sends to"
		}
		s.called[name] = true // prevents a second finding
		b.atGo(finding.NeverCalled, f.Pos(), name, suggestion, "method %s of %s is never called: %s processor %q", name, s.Type.Name, why, s.Name)
	}
}

// misspeltInputHandlers finds methods whose names resemble a missing method for changes
// of inputs.
func (b *binder) misspeltInputHandlers(s *subject) {
	if s.Inputs == nil {
		return
	}
	var missing []string
	for _, l := range s.lifecycle {
		if l.ofInputs && l.name != inputs && b.method(s.t, l.name) == nil {
			missing = append(missing, l.name)
		}
	}
	tracker := b.checked.lookup(s.Ident + "Inputs")
	tracks := tracker != nil && b.method(s.t, inputs) == nil
	for f := range s.t.(*types.Named).Methods() {
		if !f.Exported() || s.called[f.Name()] || !b.own(f.Pos()) {
			continue
		}
		suggested := b.near.Nearest(f.Name(), missing)
		if suggested != "" && spec.Edits(f.Name(), suggested) > misspeltMax {
			suggested = ""
		}
		if tracks && mentions(f, tracker) {
			suggested = b.near.Nearest(f.Name(), []string{inputs})
		}
		if suggested != "" {
			s.called[f.Name()] = true // prevents a second finding
			b.atGo(finding.NeverCalled, f.Pos(), f.Name(), "did you mean "+suggested+"?", "method %s of %s is never called: the methods for the inputs of processor %q have other names", f.Name(), s.Type.Name, s.Name)
		}
	}
}

// attempts reports messages that need a Clone method because they are read again after their
// handler has failed: by the next attempt, or by the receiver of their dead letter.
func (b *binder) attempts() {
	for i := range b.plan.Edges {
		e := &b.plan.Edges[i]
		w := b.plan.Processors[e.To].Watch
		if w == nil || e.From < 0 || e.DeadLetter || w.Isolated || e.Durable != nil || w.Attempts < 2 && w.DeadLetter < 0 {
			continue
		}
		t := b.messageTypes[e.Message]
		path := b.pointers(t)
		if path == "" {
			continue
		}
		clone, problem := b.clone(t)
		declared := declaredAs(e, i)
		if b.Facts.Edges[i].CloneAgain = clone; clone || declared >= len(b.topology.Edges) || b.topology.Edges[declared].Shared {
			continue // or an edge of a state machine, which the file does not declare
		}
		at := b.topology.Edges[declared].Message
		if e.ReplyOf >= 0 {
			at = b.topology.Edges[declared].Reply
		}
		why := fmt.Sprintf("%q makes up to %d attempts to handle it, each with its own copy", b.plan.Processors[e.To].Name, w.Attempts)
		if w.Attempts < 2 {
			why = fmt.Sprintf("%q receives it as a dead letter after a handler of %q has used it", b.plan.Processors[b.plan.Edges[w.DeadLetter].To].Name, b.plan.Processors[e.To].Name)
		}
		b.at(finding.SharedMemory, at,
			b.cloneAdvice(e.Message, t),
			"message %s holds pointers (%s), and %s%s", e.Message, path, why, problem)
	}
}
