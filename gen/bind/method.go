package bind

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec/finding"
)

// need says whether a part of a method is required.
type need int

const (
	never need = iota
	optional
	required
)

// form describes the valid signatures of a method:
// ([ctx context.Context,] m M or *M [, out]) [Reply] [error]. The handler of a durable edge
// takes a durable.Context and returns an error.
type form struct {
	context   need
	durable   string       // the durable edge whose handler it is, which takes a durable.Context; "": none
	message   types.Type   // nil: none
	value     bool         // the message must be a value, not a pointer
	text      string       // the message's type as the user writes it
	event     bool         // the parameter is about an input or a sender; it is not a message
	none      []types.Type // types that a user may expect as a parameter, but that are not allowed
	out       need
	reply     types.Type // nil: none
	replyText string
	err       need
	canonical Method
}

const contextParam = "ctx context.Context"

// match checks a method against a form. If the method does not fit, match reports it once and
// returns false, and the method must not be used.
func (b *binder) match(s *subject, f *types.Func, want form) (plan.Method, bool) {
	m, problem := b.compare(s, f, want)
	if problem == nil {
		return m, true
	}
	if s.reported[f.Name()] {
		return m, false
	}
	if problem.follows {
		return m, false
	}
	if problem.unknown && (b.broken[plan.Topo] || b.broken[plan.DurableRuntime]) {
		return m, false // the type may be one of the runtime, whose finding says what to do
	}
	if b.topology.Partial && (s.sender == nil || problem.code == finding.SenderUnfit) {
		return m, false // the method may use an edge that had an error
	}
	s.reported[f.Name()] = true
	if problem.quoted.IsValid() {
		b.quoted[problem.quoted] = true
	}
	text := fmt.Sprintf("method %s of %s %s", b.functionText(f), s.Type.Name, problem.text)
	repair := "write " + want.canonical.Signature
	if problem.context {
		repair = "write " + contextFirst(want.canonical.Signature, f.Name())
	}
	b.atFunc(problem.code, f, s.file.Name, repair, text)
	return m, false
}

// mismatch is the reason why a method does not fit.
type mismatch struct {
	code, text string
	quoted     token.Pos // position of the type error that text quotes
	context    bool      // the method has a context that is not its first parameter
	unknown    bool      // a type is unknown for a reason outside of the method
	follows    bool      // only follows from another finding
}

func misfit(format string, args ...any) *mismatch {
	return &mismatch{code: finding.MethodShape, text: fmt.Sprintf(format, args...)}
}

// quoting records in m that its text quotes the type error at pos.
func (m *mismatch) quoting(pos token.Pos) *mismatch {
	m.quoted = pos
	return m
}

func (b *binder) compare(s *subject, f *types.Func, want form) (plan.Method, *mismatch) {
	m := plan.Method{Name: f.Name()}
	sig := f.Signature()
	if sig.Variadic() {
		return m, misfit("must not be variadic")
	}
	if !known(sig) {
		return m, b.unknown(s, f)
	}
	if problem := b.params(s, sig.Params(), want, &m); problem != nil {
		if want.context != never && b.contextLater(sig.Params()) {
			problem.text, problem.context = "must take the context as its first parameter", true
		}
		return m, problem
	}
	return m, b.results(sig.Results(), want, &m)
}

// contextLater reports whether a context is among the parameters, but not the first of them.
func (b *binder) contextLater(params *types.Tuple) bool {
	list := typeList(params)
	return b.context != nil && len(list) > 1 && !types.Identical(list[0], b.context) &&
		slices.ContainsFunc(list[1:], func(t types.Type) bool { return types.Identical(t, b.context) })
}

// contextFirst returns the signature of a method with a context as its first parameter.
func contextFirst(signature, name string) string {
	before, after, _ := strings.Cut(signature, name+"(")
	switch {
	case strings.HasPrefix(after, contextParam):
		return signature
	case strings.HasPrefix(after, ")"):
		return before + name + "(" + contextParam + after
	}
	return before + name + "(" + contextParam + ", " + after
}

// known reports whether a type in a method's signature consists of declared types only.
func known(t types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		return t.Kind() != types.Invalid
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			if !known(arg) {
				return false
			}
		}
		return t.Underlying() != types.Typ[types.Invalid]
	case *types.Map:
		return known(t.Key()) && known(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		return known(t.Elem())
	case *types.Signature:
		return known(t.Params()) && known(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			if !known(v.Type()) {
				return false
			}
		}
	case *types.Struct:
		for f := range t.Fields() {
			if !known(f.Type()) {
				return false
			}
		}
	}
	return true
}

// unknown says why the type of a parameter or result is unknown.
func (b *binder) unknown(s *subject, f *types.Func) *mismatch {
	outside := misfit("uses an unknown type")
	outside.unknown = true
	d := b.declaration(f.Pos())
	if d == nil {
		return outside
	}
	for _, e := range b.checked.errors {
		switch {
		case e.Pos < f.Pos() || e.Pos > d.Type.End(): // the error is in another declaration
		case s.sender == nil && e.Msg == "undefined: "+s.Sender():
			return misfit("takes a sender, but processor %q sends nothing", s.Name).quoting(e.Pos)
		default:
			return misfit("uses an unknown type (%s)", e.Msg).quoting(e.Pos)
		}
	}
	return outside
}

// isDurableContext reports whether t is the context of durable functions.
func isDurableContext(t types.Type) bool { return isNamed(t, plan.DurableRuntime, "Context") }

func (b *binder) params(s *subject, params *types.Tuple, want form, m *plan.Method) *mismatch {
	list := typeList(params)
	durable := len(list) > 0 && isDurableContext(list[0])
	switch {
	case want.durable != "" && !durable:
		return misfit("must take durable.Context as its first parameter: the edge %s is durable", want.durable)
	case want.durable == "" && durable && want.message != nil && !want.event:
		return misfit("must not take durable.Context: its edge is not durable")
	case want.durable != "":
		m.Durable, list = true, list[1:]
	}
	if len(list) > 0 && b.context != nil && types.Identical(list[0], b.context) {
		if want.context == never {
			return misfit("must not take a context")
		}
		m.Context, list = true, list[1:]
	} else if want.context == required {
		return misfit("must take the context as its first parameter")
	}
	if want.message != nil {
		switch {
		case len(list) == 0:
			return misfit("must take %s", want.text)
		case types.Identical(list[0], want.message):
			m.Message = plan.ByValue
		case !want.value && types.Identical(list[0], types.NewPointer(want.message)):
			m.Message = plan.ByPointer
		default:
			return misfit("must take %s, got %s", want.text, b.typeText(list[0]))
		}
		list = list[1:]
	}
	switch {
	case len(list) == 0 && want.out == required && s.sender != nil:
		return misfit("must take the sender last")
	case len(list) == 0:
		return nil
	case leadsTo(list[0], want.none...):
		return misfit("must not take %s: it is not about a single input", b.typeText(list[0]))
	case len(list) > 1 || want.out == never:
		return misfit("has too many parameters")
	case s.sender == nil:
		return misfit("has one parameter too many: processor %q sends nothing, so it has no sender", s.Name)
	}
	return b.out(s, list[0], m)
}

func (b *binder) results(results *types.Tuple, want form, m *plan.Method) *mismatch {
	list := typeList(results)
	if want.reply != nil {
		switch {
		case len(list) == 0 || len(list) == 1 && isError(list[0]) && !isError(want.reply):
			return &mismatch{code: finding.ReplyType, text: "must return a reply"}
		case !types.Identical(list[0], want.reply):
			return &mismatch{code: finding.ReplyType, text: "must return the reply " + want.replyText + ", got " + b.typeText(list[0])}
		}
		m.Reply, list = true, list[1:]
	}
	if len(list) > 0 && isError(list[len(list)-1]) && want.err != never {
		m.Error, list = true, list[:len(list)-1]
	} else if want.err == required {
		return misfit("must return an error last")
	}
	if len(list) > 0 {
		if want.message != nil && want.reply == nil && !want.event {
			return &mismatch{code: finding.ReplyType, text: "returns a result, but its edge declares no reply"}
		}
		return misfit("has too many results")
	}
	return nil
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// typeList returns the types of parameters or results.
func typeList(t *types.Tuple) (list []types.Type) {
	for v := range t.Variables() {
		list = append(list, v.Type())
	}
	return list
}
