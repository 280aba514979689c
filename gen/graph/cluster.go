package graph

import (
	"slices"

	"github.com/topogen/topogen/spec"
)

// Cluster has the nodes on which a topology runs.
type Cluster struct {
	Addresses string        `json:"addresses"` // the engine of the address table
	Nodes     []ClusterNode `json:"nodes"`
}

// ClusterNode is a node of a cluster.
type ClusterNode struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// Placement is the choice of nodes for the instances of a processor.
type Placement struct {
	Kind string `json:"kind"` // "spread", "every-node", "node"
	Node string `json:"node"` // name of the node, for the kind node
	With string `json:"with"` // name of the first processor that is placed together with this one; empty: it is the first one
}

// addCluster adds the nodes and the placement of the processors.
func (g *Graph) addCluster(t *spec.Topology) {
	if t.Cluster == nil {
		return
	}
	g.Cluster = &Cluster{Addresses: string(t.Cluster.Addresses)}
	for _, node := range t.Cluster.Nodes {
		g.Cluster.Nodes = append(g.Cluster.Nodes, ClusterNode{node.Name.Value, node.Address.Value})
	}
	for i, p := range t.Processors {
		place := &Placement{Kind: string(p.Placement.Kind), Node: p.Placement.Node.Value}
		if with := p.Placement.With; with != i {
			place.With = t.Processors[with].Name.Value
		}
		g.Nodes[i].Placement = place
	}
	for i := range t.Edges {
		if t.Crosses(&t.Edges[i]) {
			g.Edges[i].Crosses = true
			g.Edges[i].Delivery = t.Edges[i].Delivery
		}
	}
}

// words is the badge of a placement: spread, with counter, every node, on n1.
func (p *Placement) words() string {
	switch {
	case p == nil:
		return ""
	case p.Kind == string(spec.EveryNode):
		return "every node"
	case p.Kind == string(spec.OnNode):
		return "on " + p.Node
	case p.With != "":
		return "with " + p.With
	}
	return p.Kind
}

// clusterStyle is the additional style for topologies with a cluster.
const clusterStyle = `.topogen .badge.place{fill:#d5ebf7}
.topogen .badge-text.place{fill:#0f4c6b}
@media (prefers-color-scheme:dark){
.topogen .badge.place{fill:#174258}
.topogen .badge-text.place{fill:#b5e0f7}
}
`

func (g Graph) placed() bool {
	return slices.ContainsFunc(g.Nodes, func(n Node) bool { return n.Placement != nil })
}
