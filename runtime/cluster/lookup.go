package cluster

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// lookup reads the address table with the indices of the topology. It implements places.
type lookup struct {
	settings *settings
	replica  *table.Replica
	entries  []int      // by processor: its index in the table, or -1
	boot     table.Boot // of this process; 0: a client
	joined   uint64     // epoch of this process

	members atomic.Pointer[members]
}

// members are the names of the nodes that take part, for one list of the address table.
type members struct {
	of    []*table.Node
	names []string
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
		return l.settings.node, l.settings.Processors[processor].Placement == EveryNode
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
	return name == l.settings.node, n != nil && n.State < table.Left
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

// Boot implements places.
func (l *lookup) Boot(name string) (boot uint64, known bool) {
	if n := l.replica.Node(name); n != nil && n.State < table.Left {
		return uint64(n.Boot), true
	}
	return 0, false
}

// End implements places.
func (l *lookup) End() *table.End { return l.replica.End() }

// Members implements places. First members that have not started yet count: they must
// run instances. The list is made once for each change of the nodes, because the core reads it for each
// message to all nodes.
func (l *lookup) Members() []string {
	nodes := l.replica.Nodes()
	if m := l.members.Load(); m != nil && len(m.of) == len(nodes) && (len(nodes) == 0 || &m.of[0] == &nodes[0]) {
		return m.names // the table replaces the slice when a node changes
	}
	m := &members{of: nodes}
	for _, n := range nodes { // by name
		if n.State < table.Left {
			m.names = append(m.names, n.Name)
		}
	}
	l.members.Store(m)
	return m.names
}
