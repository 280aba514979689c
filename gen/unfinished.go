package gen

import (
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// refuseCluster reports what package emit writes no code for yet: engines of a cluster, replies
// of several instances, edges to the instances of one node of a processor that every node has, and edges from isolated
// processors to all of its instances. The change that lets emit write it deletes this file and
// the call in Result.emit.
func refuseCluster(t *spec.Topology, p *plan.Plan) (list []finding.Finding) {
	if c := p.Cluster; c != nil && c.Addresses != "raft" {
		list = append(list, finding.New(finding.GoType, t.File, t.Cluster.At, t.Cluster.Pointer,
			"topogen cannot generate the code of a cluster with addresses: "+c.Addresses+" yet", "use raft"))
	}
	for i := range p.Edges {
		if at := t.Edges[min(i, len(t.Edges)-1)]; p.Edges[i].Joins {
			list = append(list, finding.New(finding.GoType, t.File, at.At, at.Pointer,
				"topogen cannot generate the code of the edge "+p.EdgeText(i)+" yet, because it leads to several instances and has a reply", "choose one instance"))
		}
	}
	for i := range p.Edges {
		e := &p.Edges[i]
		if to := &p.Processors[e.To]; !e.Crosses || to.Placement == nil || to.Placement.Kind != plan.EveryNode {
			continue
		}
		if e.Joins {
			continue
		}
		if e.Route == plan.Broadcast && !p.Processors[e.From].Isolated() {
			continue
		}
		declared := i
		if e.ReplyOf >= 0 {
			declared = e.ReplyOf
		}
		at := t.Edges[declared]
		list = append(list, finding.New(finding.GoType, t.File, at.At, at.Pointer,
			"topogen cannot generate the code of the edge "+p.EdgeText(i)+" yet, because it leads to the instances of one other node, or from another process to all nodes", "use \"route: local\""))
	}
	return list
}
