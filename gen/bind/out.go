package bind

import (
	"go/types"
	"slices"
	"strings"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// out binds the parameter that takes the sender: a pointer to the sender, or an interface
// that the sender satisfies.
func (b *binder) out(s *subject, t types.Type, m *plan.Method) *mismatch {
	if types.Identical(t, s.sender) {
		m.Out = plan.SenderOut
		return nil
	}
	iface, ok := t.Underlying().(*types.Interface)
	if !ok {
		if types.Identical(types.NewPointer(t), s.sender) {
			return misfit("must take its sender by pointer")
		}
		if p, ok := types.Unalias(t).(*types.Pointer); ok && strings.HasSuffix(b.typeText(p.Elem()), "Sender") {
			return misfit("must take its own sender, got %s", b.typeText(t))
		}
		return misfit("must take the sender, got %s", b.typeText(t))
	}
	if types.Implements(s.sender, iface) {
		m.Out = plan.InterfaceOut
		b.outType(t, iface, m)
		return nil
	}
	return b.adapt(s, t, iface, m)
}

// adapt binds an interface whose methods lack the error results of a source's sender. Such an
// error only says that the topology is stopping, so the adapter may drop it. An adapter must
// not drop ErrFull.
func (b *binder) adapt(s *subject, t types.Type, iface *types.Interface, m *plan.Method) *mismatch {
	name := b.typeText(t)
	unfit := func(text string) *mismatch {
		return &mismatch{code: finding.SenderUnfit, text: "takes " + name + ", which " + s.Sender() + " does not satisfy: " + text}
	}
	for f := range iface.Methods() {
		have := b.method(s.sender, f.Name())
		if have == nil {
			text := "it has no method " + f.Name()
			var names []string
			for _, send := range s.Sends {
				names = append(names, send.Name)
			}
			if near := b.near.Nearest(f.Name(), names); near != "" {
				text += ", but " + near
			}
			return unfit(text)
		}
		want, has := f.Signature(), have.Signature()
		switch {
		case !known(has):
			return &mismatch{follows: true}
		case !types.Identical(want.Params(), has.Params()) || want.Variadic():
			return unfit("its method is " + b.functionText(have))
		case types.Identical(want.Results(), has.Results()):
		case want.Results().Len() > 0:
			return unfit("its method is " + b.functionText(have))
		case !s.Source() || b.fails(s, f.Name()):
			return unfit("its method is " + b.functionText(have) + ", which returns an error when a queue is full")
		default:
			m.OutMethods = append(m.OutMethods, f.Name())
		}
	}
	m.Out = plan.AdaptedOut
	b.outType(t, iface, m)
	return nil
}

// outType finds how the generated package writes the interface: by its name, or as a type
// literal. It cannot write an unexported name of another package.
func (b *binder) outType(t types.Type, iface *types.Interface, m *plan.Method) {
	_, literal := t.(*types.Interface)
	switch {
	case literal && iface.Empty():
		m.OutType = &plan.TypeRef{Name: "any"}
	case literal:
		for f := range iface.Methods() {
			m.OutNames = append(m.OutNames, f.Name())
		}
	default:
		if ref, problem := b.typeRef(t); problem == "" {
			m.OutType = &ref
		}
	}
}

// fails reports whether the send of that name may return ErrFull.
func (b *binder) fails(s *subject, name string) bool {
	return slices.ContainsFunc(s.Sends, func(send plan.Send) bool {
		return send.Name == name && slices.ContainsFunc(send.Edges, func(e int) bool { return b.plan.Edges[e].Full == string(spec.Fail) })
	})
}
