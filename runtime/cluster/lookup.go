package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// lookup reads the address table with the indices of the topology. It implements places.
type lookup struct {
	settings *settings
	replica  *table.Replica
	entries  []int // by processor: its index in the table, or -1

	// home is the node whose instances are, for a client, those that each node has. Its
	// messages to the instances of all nodes go there, and from there nowhere else: the
	// others get them as those of other nodes. It is "" on a node.
	home string
}

func newLookup(s *settings, replica *table.Replica) (*lookup, error) {
	l := &lookup{settings: s, replica: replica}
	for i := range s.Processors {
		p := &s.Processors[i]
		l.entries = append(l.entries, -1)
		if p.Instances == 0 || p.Placement == EveryNode {
			continue
		}
		index, instances, ok := l.replica.Processor(s.Processors[p.With].Name)
		if !ok || instances < p.Instances {
			return nil, fmt.Errorf("cluster: the address table has %d instances of %s, the topology has %d", instances, p.Name, p.Instances)
		}
		l.entries[i] = index
	}
	return l, nil
}

// Node implements places.
func (l *lookup) Node(processor, instance int) (name string, ok bool) {
	entry := l.entries[processor]
	if entry < 0 {
		return cmp.Or(l.home, l.settings.node), l.settings.Processors[processor].Placement == EveryNode
	}
	n, _ := l.replica.Lookup(entry, instance)
	if n == nil {
		return "", false
	}
	return n.Name, true
}

// find reports whether a name is that of this node, and whether a node with this name takes
// part in the topology.
func (l *lookup) find(name string) (here, known bool) {
	n := l.replica.Node(name)
	return name == cmp.Or(l.home, l.settings.node), n != nil && n.State < table.Left
}

// isHere reports whether this node runs an instance.
func (l *lookup) isHere(processor, instance int) bool {
	name, ok := l.Node(processor, instance)
	return ok && name == l.settings.node
}

// nodes returns the nodes that have not left.
func (l *lookup) nodes() []*table.Node {
	return slices.DeleteFunc(slices.Clone(l.replica.Nodes()), func(n *table.Node) bool { return n.State >= table.Left })
}

// Members implements places. First members that have not started yet count: they must
// run instances.
func (l *lookup) Members() []string {
	var names []string
	for _, n := range l.nodes() {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names
}
