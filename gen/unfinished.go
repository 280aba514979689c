package gen

import (
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// refuseCluster reports what package emit writes no code for yet. The change that lets emit
// write all of it deletes this file and the call in Result.emit.
func refuseCluster(t *spec.Topology, p *plan.Plan) (list []finding.Finding) {
	for i := range p.Edges {
		why, instead := unfinishedEdge(p, i)
		if why == "" {
			continue
		}
		declared := i
		if of := p.Edges[i].ReplyOf; of >= 0 {
			declared = of
		}
		at := t.Edges[declared]
		list = append(list, finding.New(finding.GoType, t.File, at.At, at.Pointer,
			"topogen cannot generate the code of the edge "+p.EdgeText(i)+" yet, because "+why, instead))
	}
	return list
}

// unfinishedEdge says why emit writes no code for an edge; "" if it does.
func unfinishedEdge(p *plan.Plan, i int) (why, instead string) {
	e := &p.Edges[i]
	to := &p.Processors[e.To]
	switch {
	case e.Joins:
		return "it leads to several instances and has a reply", "choose one instance"
	case !e.Crosses || to.Placement == nil || to.Placement.Kind != plan.EveryNode:
		return "", ""
	case e.Route != plan.Broadcast:
		return "it leads to the instances of one other node", `use "route: local" or "route: broadcast"`
	case p.Processors[e.From].Isolated():
		return "it leads from another process to the instances of all nodes", `use "route: local"`
	}
	return "", ""
}
