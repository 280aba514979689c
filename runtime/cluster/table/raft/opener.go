package raft

import "github.com/topogen/topogen/runtime/cluster/table"

// Opener returns the function that opens the table for package cluster.
func Opener() table.Opener {
	return func(s table.Setup) (table.Table, error) {
		return Open(Config{
			Topology: s.Topology, Node: s.Node, Address: s.Address, First: s.First, Plan: s.Plan,
			Dir: s.Dir, Transport: s.Transport, Gone: s.Gone, Logger: s.Logger,
		})
	}
}
