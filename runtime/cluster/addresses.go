package cluster

import "github.com/topogen/topogen/runtime/cluster/table"

// linkedProcess is a process of a node, as the address table has it.
type linkedProcess struct {
	boot    table.Boot
	address string
}

// follow compares the address table with its former state. If the process of a node has changed, its link gets the new
// address. Other links keep their addresses: failure detection may have given such a link the address of a process that
// is about to enter. With the former address, the link could not carry the answers that this process needs to enter.
// There is no former state at the first call. Then the address that a connected process has announced has
// precedence, for the same reason. Only watch calls follow.
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
