package bind

import (
	"fmt"
	"go/types"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec/finding"
)

// aggregates finds the method Aggregate of replies that an Ask gets from several instances. It
// reports replies without this method.
func (b *binder) aggregates() {
	for i := range b.plan.Edges {
		e := &b.plan.Edges[i]
		if e.Reply == "" || e.From < 0 || !b.plan.Processors[e.From].External || !b.answersSeveral(e) {
			continue
		}
		t := b.messageTypes[e.Reply]
		if t == nil {
			continue // it has a finding already
		}
		b.Facts.Edges[i].Joins = true
		problem := "has no method Aggregate"
		if f := b.method(t, "Aggregate"); f != nil {
			s := f.Signature()
			if s.Params().Len() == 1 && !s.Variadic() && s.Results().Len() == 1 && types.Identical(s.Params().At(0).Type(), t) && types.Identical(s.Results().At(0).Type(), t) {
				continue
			}
			problem = "has " + b.functionText(f)
		}
		b.at(finding.NoAggregate, b.topology.Edges[i].Reply, fmt.Sprintf("give %s a method Aggregate(%[2]s) %[2]s, or choose one instance", e.Reply, b.typeText(t)),
			"an edge with a reply to Ask leads to several instances, so the reply must have a method that joins two replies, but %s %s", e.Reply, problem)
	}
}

// answersSeveral reports whether several instances answer one Ask along the edge.
func (b *binder) answersSeveral(e *plan.Edge) bool {
	to := &b.plan.Processors[e.To]
	switch e.Route {
	case plan.Broadcast:
		return to.Instances > 1 || to.Placement != nil && to.Placement.Kind == plan.EveryNode
	case plan.Range:
		return e.Count > 1
	}
	return false
}
