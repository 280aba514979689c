package bind

import (
	"fmt"
	"go/types"
	"slices"
	"strconv"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
)

// machines finds the types that machines are made of, and whether updates change
// states.
func (b *binder) machines() {
	for i := range b.plan.Processors {
		m := b.plan.Processors[i].Machine
		if m == nil {
			continue
		}
		f := b.topology.Processors[i].Machine
		if !b.importable(m.Runtime.Import, spec.Text{At: f.At, Pointer: f.Pointer}) || m.State == "" {
			continue
		}
		state := b.resolve("TG306", "state "+strconv.Quote(m.State), statePrefix+strconv.Itoa(i), m.StateType, f.State)
		update := b.resolve("TG306", "update "+strconv.Quote(m.Update), updatePrefix+strconv.Itoa(i), m.UpdateType, f.Update)
		b.kept[m.State], b.kept[m.Update] = state, update
		if !b.doubt {
			b.updater(i, state, update)
		}
	}
}

// ofUnknownUpdate reports whether a type is a machine's message whose update type
// is wrong.
func (b *binder) ofUnknownUpdate(t plan.TypeRef) bool {
	for _, a := range b.plan.Aliases {
		m := b.plan.Processors[a.Processor].Machine
		if a.Name == t.Name && t.Import == "" && m.Update != "" && b.kept[m.Update] == nil && len(a.Type.Args) > 0 {
			return true
		}
	}
	return false
}

// updater reports what an update type lacks.
func (b *binder) updater(i int, state, update types.Type) {
	m := b.plan.Processors[i].Machine
	f := b.topology.Processors[i].Machine
	missing := Missing{Processor: i, Update: true, Type: m.UpdateType.Name, Import: m.UpdateType.Import}
	text := m.StateType.Format(b.qualifier)
	for _, name := range []string{"Update", "Revert"} {
		method := Method{Name: name, Edge: -1, Imports: m.StateType.Imports(nil)}
		method.Signature = fmt.Sprintf("func (%s *%s) %s(s *%s) error", updateReceiver(m.UpdateType.Name), m.UpdateType.Name, name, text)
		if update == nil {
			missing.Methods = append(missing.Methods, method)
			continue
		}
		object, _, _ := types.LookupFieldOrMethod(update, true, b.checked.pkg, name)
		switch found, _ := object.(*types.Func); {
		case found == nil:
			missing.Methods = append(missing.Methods, method)
			b.at("TG319", f.Update, method.Signature, "type %s has no method %s for the state %s", m.UpdateType.Name, name, m.State)
		case state != nil && !takesState(found.Signature(), state):
			said := fmt.Sprintf("method %s of %s does not fit the state: it is %s(s *%s) error", b.functionText(found), m.UpdateType.Name, name, text)
			if b.own(found.Pos()) {
				b.atGo("TG319", found.Pos(), name, method.Signature, "%s", said)
			} else {
				b.at("TG319", f.Update, method.Signature, "%s", said)
			}
		}
	}
	twice := slices.ContainsFunc(b.missing, func(other Missing) bool {
		return other.Update && other.Type == missing.Type && other.Import == missing.Import
	})
	if len(missing.Methods) > 0 && !twice && (update != nil || b.listed[m.UpdateType.Name]) {
		b.missing = append(b.missing, missing)
	}
}

// updateReceiver is the name of the receiver of an update's methods, whose
// parameter is s.
func updateReceiver(name string) string {
	if r := receiver(name); r != "s" {
		return r
	}
	return "u"
}

// takesState reports whether a method is func(*State) error.
func takesState(s *types.Signature, state types.Type) bool {
	return !s.Variadic() && s.Params().Len() == 1 && s.Results().Len() == 1 && isError(s.Results().At(0).Type()) &&
		types.Identical(s.Params().At(0).Type(), types.NewPointer(state))
}

// proposers finds the sends whose message says which instance the answer goes to:
// the sender fills that in.
func (b *binder) proposers() {
	for i := range b.plan.Processors {
		p := &b.plan.Processors[i]
		for j := range p.Sends {
			s := &p.Sends[j]
			if s.Proposes {
				continue // another one sends it
			}
			for _, e := range s.Edges {
				if b.plan.Processors[b.plan.Edges[e].To].Machine != nil && hasProposer(b.messages[s.Message]) {
					s.Proposer = true
				}
			}
		}
	}
}

func hasProposer(t types.Type) bool {
	if t == nil {
		return false
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range s.Fields() {
		if f.Name() == spec.Proposer {
			return true
		}
	}
	return false
}

// machine looks at a machine as processor does at others: it says by itself what it
// takes. It reports whether it acts before anything was sent to it.
func (b *binder) machine(i int) (starts bool) {
	return b.plan.Processors[i].Machine.Controller < 0
}
