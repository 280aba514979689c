package bind

import (
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// durableEdge finds the id and the limit of a durable edge, and reports a message or a reply
// that JSON would change.
func (b *binder) durableEdge(i int) {
	e := &b.plan.Edges[i]
	if e.Durable == nil {
		return
	}
	file := &b.topology.Edges[i]
	if t := b.messageTypes[e.Message]; t != nil {
		f := &b.Facts.Edges[i]
		if e.Durable.ID != nil {
			f.ID, _ = b.walk(plan.Key, file.ID, t)
			b.checkID(f.ID, file.ID)
		}
		if l := e.Durable.Limit; l != nil && l.Per != nil {
			f.Per, _ = b.walk(plan.Key, file.Limit.Per, t)
		}
	}
	b.keptAsJSON("message", file.Message)
	if e.Reply != "" {
		b.keptAsJSON("reply", file.Reply)
	}
}

// checkID reports the id of an execution that is not a name.
func (b *binder) checkID(id *plan.Selector, field spec.Text) {
	if id.KeyKind == plan.KeyBytes || id.KeyKind == plan.KeyBool {
		b.at(finding.KeyType, field, "", "the id of an execution must be a string or an integer, got %s", field.Value)
	}
}

// keptAsJSON reports the message or reply with that name if JSON would change it. Messages of
// several edges have one finding.
func (b *binder) keptAsJSON(what string, name spec.Text) {
	t := b.messageTypes[name.Value]
	if t == nil || b.asJSON[name.Value] {
		return
	}
	b.asJSON[name.Value] = true
	walk := jsonWalk{pkg: b.checked.pkg, seen: make(map[jsonVisit]bool), entered: make(map[jsonVisit]bool)}
	if problem := walk.check(t, true); problem != nil {
		b.at(finding.NotJSON, name, problem.suggestion, "%s %q cannot be kept as JSON: %s", what, name.Value, problem.text(b))
	}
}
