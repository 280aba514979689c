// Package tabletest checks that an engine keeps the guarantees of
// [github.com/topogen/topogen/runtime/cluster/table.Table]. The tests of each engine call
// it:
//
//	tabletest.Run(t, tabletest.Engine{New: func(t *testing.T) tabletest.Cluster { … }})
//
// An engine that cannot keep a guarantee says so in Engine.Lacks, with the reason. The
// test of this guarantee is then skipped, and prints the reason.
package tabletest
