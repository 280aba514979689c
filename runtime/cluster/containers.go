package cluster

import (
	"iter"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// Container is an instance of a processor, and its place in the address table.
type Container struct {
	Processor string `json:"processor"`
	Instance  int    `json:"instance"`
	Node      string `json:"node"`  // "": it has no place
	Epoch     uint64 `json:"epoch"` // grows each time the instance gets another place; 0 on every node, where places never change
}

// Containers returns all instances of the topology by processor and number, and where they
// are now. An instance that moves during the iteration has its old or its new place. There
// are none for a nil view, and none while the node starts.
//
// Instances on every node are in the list once for each node.
func (v *View) Containers() iter.Seq[Container] {
	return func(yield func(Container) bool) {
		if v == nil || v.lookup == nil {
			return
		}
		l := v.lookup
		members := l.Members()
		for i := range l.settings.Processors {
			p := &l.settings.Processors[i]
			for j := range p.Instances {
				if p.Placement != EveryNode {
					c := Container{Processor: p.Name, Instance: j}
					var n *table.Node
					if n, c.Epoch = l.replica.Lookup(l.entries[i], j); n != nil {
						c.Node = n.Name
					}
					if !yield(c) {
						return
					}
					continue
				}
				for _, name := range members {
					if !yield(Container{Processor: p.Name, Instance: j, Node: name}) {
						return
					}
				}
			}
		}
	}
}

// count calls add with the node of each instance that has one.
func (l *lookup) count(add func(node string)) {
	v := View{lookup: l}
	for c := range v.Containers() {
		if c.Node != "" {
			add(c.Node)
		}
	}
}

// placed is the number of instances that are placed on a node, and that no other node runs.
func (l *lookup) placed(node string) (instances int) {
	for i := range l.settings.Processors {
		p := &l.settings.Processors[i]
		if p.Placement == EveryNode {
			continue
		}
		for j := range p.Instances {
			if n, _ := l.replica.Lookup(l.entries[i], j); n != nil && n.Name == node {
				instances++
			}
		}
	}
	return instances
}

// String returns the name of the placement, as in topology files.
func (p Placement) String() string {
	switch p {
	case EveryNode:
		return "every-node"
	case OnNode:
		return "node"
	}
	return "spread"
}
