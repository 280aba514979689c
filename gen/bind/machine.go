package bind

import (
	"fmt"
	"go/types"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// machines finds the types of state machines, and checks the methods of their updates.
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
		u := &updater{machine: i, m: m, f: f}
		u.state = b.resolve(finding.MessageType, "state "+strconv.Quote(m.State), statePrefix+strconv.Itoa(i), m.StateType, f.State, nil)
		u.update = b.resolve(finding.MessageType, "update "+strconv.Quote(m.Update), updatePrefix+strconv.Itoa(i), m.UpdateType, f.Update, nil)
		if b.copied("update "+m.Update, "make the update a pointer", u.update, f.Update) {
			u.update = nil
		}
		if m.Result != "" {
			u.result = b.resolve(finding.MessageType, "result "+strconv.Quote(f.Result.Value), resultPrefix+strconv.Itoa(i), m.ResultType, f.Result, nil)
			if b.copied("result "+f.Result.Value, "make the result a pointer", u.result, f.Result) {
				u.result = nil
			}
			b.kept[m.Result] = u.result
		}
		b.kept[m.State], b.kept[m.Update] = u.state, u.update
		b.updater(u)
		b.Facts.Processors[i].Machine.Errors = b.sentinels(m)
	}
}

// machineKey finds the field or method by which an update chooses its instance.
func (b *binder) machineKey(i int) {
	m := b.plan.Processors[i].Machine
	if m == nil || m.Keyed == nil {
		return
	}
	t := b.kept[m.Update]
	if t == nil {
		return
	}
	facts := &b.Facts.Processors[i].Machine
	if facts.Key, t = b.walk(m.Keyed.Route, b.topology.Processors[i].Machine.Route.Field, t); t == nil {
		return
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		facts.KeyType = u.Name()
	case *types.Slice: // []byte, the only slice that can be a key
		facts.KeyType = "[]byte"
	}
}

// ofUnknownUpdate reports whether a type is a message of a state machine with an invalid
// update type.
func (b *binder) ofUnknownUpdate(t plan.TypeRef) bool {
	for _, a := range b.plan.Aliases {
		m := b.plan.Processors[a.Processor].Machine
		if a.Name == t.Name && t.Import == "" && m.Update != "" && b.kept[m.Update] == nil && len(a.Type.Args) > 0 {
			return true
		}
	}
	return false
}

// updater is an update type with the state and result that it must fit. A nil type has a
// finding.
type updater struct {
	machine               int
	m                     *plan.Machine
	f                     *spec.Machine
	state, update, result types.Type
	missing               []Method
}

// updater reports the methods that an update type lacks.
func (b *binder) updater(u *updater) {
	m, results := u.m, "error"
	if m.Result != "" {
		results = "(" + m.ResultType.Format(b.qualifier) + ", error)"
	}
	if found := b.method(u.update, "UpdateAt"); found != nil {
		b.Facts.Processors[u.machine].Machine.At = true
		b.fits(u, found, ", e fsm.Entry", results)
	} else {
		b.updateMethod(u, "Update", results)
	}
	if m.Revert {
		b.updateMethod(u, "Revert", "error")
	}
	if u.update != nil || b.listed[m.UpdateType.Name] {
		b.lack(Missing{Processor: u.machine, Update: true, Type: m.UpdateType.Name, Import: m.UpdateType.Import, Methods: u.missing})
	}
}

// updateMethod finds and checks a method of an update type.
func (b *binder) updateMethod(u *updater, name, results string) {
	m, f := u.m, u.f
	found := b.method(u.update, name)
	if found != nil {
		b.fits(u, found, "", results)
		return
	}
	method := Method{Name: name, Edge: -1, Imports: m.StateType.Imports(nil), Signature: b.form(u, name, "", results)}
	if name == "Update" && m.Result != "" {
		method.Reply = m.ResultType.Format(b.qualifier)
		method.Imports = m.ResultType.Imports(method.Imports)
	}
	u.missing = append(u.missing, method)
	switch {
	case u.update == nil:
	case name == "Revert":
		b.at(finding.UpdateUnfit, f.Update, method.suggestion(m.UpdateType.Import), "type %s must have a method Revert for the state %s, because %q has \"revert: true\"",
			m.UpdateType.Name, m.State, b.plan.Processors[u.machine].Name)
	default:
		b.at(finding.UpdateUnfit, f.Update, method.suggestion(m.UpdateType.Import), "type %s must have a method %s for the state %s", m.UpdateType.Name, name, m.State)
	}
}

// form is the declaration of a method of an update type.
func (b *binder) form(u *updater, name, more, results string) string {
	m := u.m
	return fmt.Sprintf("func (%s *%s) %s(s *%s%s) %s", updateReceiver(m.UpdateType.Name), m.UpdateType.Name, name, m.StateType.Format(b.qualifier), more, results)
}

// fits reports a method whose form differs from the form that a state machine calls.
func (b *binder) fits(u *updater, found *types.Func, more, results string) {
	if u.state == nil || u.m.Result != "" && u.result == nil {
		return
	}
	form := b.form(u, found.Name(), more, results)
	quoted := fmt.Sprintf("method %s of %s does not fit the state: it must be %s", b.functionText(found), u.m.UpdateType.Name, strings.TrimPrefix(form[strings.Index(form, ") ")+2:], " "))
	suggestion := "write " + form
	switch s := found.Signature(); {
	case !takesState(s, u.state, more != ""):
	case results == "error" && fails(s) == 1, results != "error" && fails(s) == 2 && types.Identical(s.Results().At(0).Type(), u.result):
		return
	case results == "error" && fails(s) == 2 && found.Name() != "Revert":
		value := b.typeText(s.Results().At(0).Type())
		quoted = fmt.Sprintf("method %s of %s returns a %s, but the topology file declares no result", b.functionText(found), u.m.UpdateType.Name, value)
		suggestion = fmt.Sprintf("write \"result: %s\" in the topology file", value)
	}
	b.atFunc(finding.UpdateUnfit, found, u.f.Update, suggestion, quoted)
}

// updateReceiver is the receiver name for an update's methods. It differs from s, the name
// of the parameter.
func updateReceiver(name string) string {
	if r := receiver(name); r != "s" {
		return r
	}
	return "u"
}

// takesState reports whether the parameters of a method are a *State and, if entry is set, an
// fsm.Entry.
func takesState(s *types.Signature, state types.Type, entry bool) bool {
	params := typeList(s.Params())
	switch {
	case s.Variadic() || len(params) == 0 || !types.Identical(params[0], types.NewPointer(state)):
		return false
	case entry:
		return len(params) == 2 && isNamed(params[1], plan.FSM, "Entry")
	}
	return len(params) == 1
}

// fails returns the number of results of a method whose last result is an error. It returns 0
// for any other method.
func fails(s *types.Signature) int {
	n := s.Results().Len()
	if n == 0 || !isError(s.Results().At(n-1).Type()) {
		return 0
	}
	return n
}

// sentinels finds the errors that keep their identity in a log: exported error variables
// named Err… in the package of an update type.
func (b *binder) sentinels(m *plan.Machine) (names []string) {
	pkg := b.packageAt(m.UpdateType.Import)
	if pkg == nil {
		return nil // the type has a finding already
	}
	scope := pkg.Scope()
	for _, name := range scope.Names() { // sorted
		if v, ok := scope.Lookup(name).(*types.Var); ok && sentinelName(name) && isErrorType(v.Type()) {
			names = append(names, name)
		}
	}
	return names
}

// sentinelName reports whether name is the name of a sentinel error, such as ErrNoMoney.
func sentinelName(name string) bool {
	rest, ok := strings.CutPrefix(name, "Err")
	first, _ := utf8.DecodeRuneInString(rest)
	return ok && rest != "" && !unicode.IsLower(first)
}

// isErrorType reports whether values of a type are errors that can be compared.
func isErrorType(t types.Type) bool {
	return types.Comparable(t) && types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
}

// proposers finds the sends of messages with the field Proposer. The sender sets that field to
// the index of its instance, which receives the answer.
func (b *binder) proposers() {
	for i := range b.plan.Processors {
		p := &b.plan.Processors[i]
		for j := range p.Sends {
			s := &p.Sends[j]
			if s.Proposes {
				continue // another send sends the message
			}
			for _, e := range s.Edges {
				if b.plan.Processors[b.plan.Edges[e].To].Machine != nil && hasProposer(b.messageTypes[s.Message]) {
					b.Facts.Processors[i].Sends[j].Proposer = true
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
