package cluster

import "github.com/topogen/topogen/runtime/cluster/table"

// sameNodes are places with a constant list of nodes.
type sameNodes []string

func (n sameNodes) Node(int, int) (string, bool) { return "", false }
func (n sameNodes) Members() []string            { return n }
func (n sameNodes) Boot(string) (uint64, bool)   { return 0, true }
func (n sameNodes) End() *table.End              { return nil }
