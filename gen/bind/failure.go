package bind

import (
	"fmt"
	"go/types"
	"slices"

	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// misspeltMax is how many letters of a name may be wrong, or too many as in
// OnInputClosed: with more it is a name of the user's own.
const misspeltMax = 2

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
	for _, l := range s.lifecycle {
		name, f := l.name, b.method(s.t, l.name)
		if !l.hears || name == inputs || f == nil || s.called[name] || !b.own(f.Pos()) {
			continue
		}
		suggestion, why := "write input_timeout for one of its edges, or restart, health or on_error for a processor that sends to it", "the file declares no supervision for the inputs of"
		if name == processorRestarted {
			suggestion, why = "write restart for a processor that sends to it", "no processor with a restart sends to"
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
	var missing []string
	for _, l := range s.lifecycle {
		if l.hears && l.name != inputs && b.method(s.t, l.name) == nil {
			missing = append(missing, l.name)
		}
	}
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
			b.atGo(finding.NeverCalled, f.Pos(), f.Name(), "did you mean "+meant+"?", "method %s of %s is never called: the methods for the inputs of processor %q have other names", f.Name(), s.Type.Name, s.Name)
		}
	}
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
		t := b.messageTypes[e.Message]
		path := b.pointers(t)
		if path == "" {
			continue
		}
		clone, problem := b.clone(t)
		declared := declaredAs(e, i)
		if b.Facts.Edges[i].CloneAgain = clone; clone || declared >= len(b.topology.Edges) || b.topology.Edges[declared].Shared {
			continue // or a machine's, which the file does not declare
		}
		at := b.topology.Edges[declared].Message
		if e.ReplyOf >= 0 {
			at = b.topology.Edges[declared].Reply
		}
		why := fmt.Sprintf("%q makes up to %d attempts to handle it, each with its own copy", b.plan.Processors[e.To].Name, w.Attempts)
		if w.Attempts < 2 {
			why = fmt.Sprintf("a hanging handler of %q may still use it after it became a dead letter", b.plan.Processors[e.To].Name)
		}
		b.at(finding.SharedMemory, at,
			b.cloneAdvice(e.Message, t),
			"message %s holds pointers (%s), and %s%s", e.Message, path, why, problem)
	}
}
