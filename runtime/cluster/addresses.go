package cluster

import "github.com/topogen/topogen/runtime/cluster/table"

// linkedProcess is a process of a node, as the address table has it.
type linkedProcess struct {
	boot    table.Boot
	address string
}

// follow gives the links the addresses of the processes in the address table that have changed. It leaves
// the others: another process of such a node may be about to enter at another address, which failure detection
// has given to the link. That process could not enter if the link went back to the former address, because nobody would answer it.
// For the same reason the address that a connected process has announced counts at the first look. Only watch calls follow.
func (l *links) follow(nodes []*table.Node, self string) {
	before := l.followed
	l.followed = make(map[string]linkedProcess, len(nodes))
	for _, n := range nodes {
		p := linkedProcess{n.Boot, n.Address}
		l.followed[n.Name] = p
		if n.Name == self || n.Address == "" || before[n.Name] == p {
			continue
		}
		if before == nil {
			l.reach(n)
		} else {
			l.SetPeer(n.Name, n.Address)
		}
	}
}

// reach gives the link of a node the address of the process that is connected, or else that of the address table.
func (l *links) reach(n *table.Node) {
	address, ok := l.PeerAddress(n.Name)
	if !ok {
		address = n.Address
	}
	l.SetPeer(n.Name, address)
}
