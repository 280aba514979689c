package cluster

import "github.com/topogen/topogen/runtime/cluster/table"

// A fencing token is the epoch of an instance in the address table, which grows when another process may
// run the instance. A process takes its tokens from the table only while the table has this process.

// enter notes which process of the node this one is. It must be in the table.
func (l *lookup) enter(boot table.Boot) {
	l.boot = boot
	if n := l.replica.Node(l.settings.node); n != nil && n.Boot == boot {
		l.joined = n.Epoch
	}
}

// FencingToken returns the token of an instance for this process. For an instance that this process does
// not run, and for those that each node has, it is the epoch of the process: all later owners have
// a higher one.
func (l *lookup) FencingToken(processor, instance int) uint64 {
	if entry := l.entries[processor]; entry >= 0 {
		if n, epoch := l.replica.Lookup(entry, instance); n != nil && n.Name == l.settings.node && n.Boot == l.boot {
			return epoch
		}
	}
	return l.joined
}

// FencingToken implements border.Nodes.
func (n *Node) FencingToken(processor, instance int) uint64 {
	if where := n.where.Load(); where != nil && n.client == nil {
		return where.FencingToken(processor, instance)
	}
	return 0
}
