package broadcast

import "github.com/topogen/topogen/runtime/cluster/table"

// Opener returns the function that opens the table for package cluster.
func Opener() table.Opener {
	return func(s table.Setup) (table.Table, error) {
		return Open(Config{Topology: s.Topology, Node: s.Node, Dir: s.Dir, Transport: s.Transport, Alive: s.Alive, Logger: s.Logger})
	}
}
