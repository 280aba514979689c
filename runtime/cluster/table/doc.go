// Package table is the address table of a cluster: which nodes there are, and on which
// node each container is. A container is an instance of a processor, identified by the
// processor's name and the number of the instance.
//
//	err := table.Bootstrap(ctx, t, table.NewPlan(hash, lines), placements, firstNodes)
//	err = table.Enter(ctx, t, table.Node{Name: "n1", Address: address, Boot: table.NewBoot(), Plan: hash})
//	…
//	counter, instances, _ := t.Replica().Processor("counter")
//	node, epoch := t.Replica().Lookup(counter, 17)
//	_, err = t.Txn(ctx,
//		[]table.Guard{table.EpochIs{Processor: "counter", Instance: 17, Epoch: epoch}},
//		[]table.Change{table.Assign{Processor: "counter", First: 17, Count: 1, Node: "n2"}})
//
// A [Table] belongs to an engine. The packages below this one are the engines: raft keeps
// the table in the nodes, etcd in an existing etcd cluster, and broadcast on the disks of
// all nodes without a consensus. [Memory] is an engine in one process. Package tabletest
// checks an engine.
//
// # Guarantees
//
// The table changes only by transactions. All nodes apply the same transactions in the
// same order, and an engine with a log writes it to its disk before a replica changes. A
// transaction has guards and changes. If all guards hold, all changes are made, otherwise
// none. An acknowledged transaction is durable and is in the replica of the node that
// proposed it.
//
// Each container has an epoch, which grows whenever another process may run the container:
// when it is placed, also on the same node, and when a process joins under the name of its
// node. The epoch is the index of the transaction's entry in the log, or higher if several
// transactions are in one entry. So it is a fencing token for a store outside of the cluster: the
// store refuses a token that is lower than one it has seen for the container. The index counts
// from 1 again after the table was deleted. Epochs never decrease and never repeat. [EpochIs] makes
// a transaction a compare-and-set. Each event has the [Revision] of its transaction.
//
// A [Watcher] gets all changes in order. If it is too slow, or the replica was replaced by
// a snapshot, it gets a snapshot and then the changes after it. It never misses a change
// without such a snapshot.
//
// A [Lease] has a fencing token, which grows with each acquisition. A holder that could
// not renew its lease in time sees that the lease is lost, before another holder can get
// it, if the clocks of the nodes differ by at most a second. A transaction with the guard
// [LeaseIs] does not depend on clocks.
//
// Engines may give less; the comment of an engine's package says so.
//
// # Limits
//
// A table has at most [NodesMax] nodes and [ContainersMax] containers, a transaction has
// at most [CommandBytes] bytes. Everything from a disk or another node is checked against
// these limits. A container takes eight bytes in a replica. For watchers, the last 4,096
// events are kept, or fewer if they contain more than 16,384 moves.
//
// The table does not detect failures. A node that has crashed remains a member until
// another part of the cluster removes it ([Remove]). A lookup of two containers may see a transaction
// that moves both at different times; [Replica.Snapshot] does not.
//
// # Design
//
// [State] is the table as a pure state machine: commands in, outcomes and events out. An
// engine orders the commands. [Replica] holds the state of one node. A cell of eight bytes
// holds the node and the epoch of a container, so a lookup takes two atomic loads of the
// cell and two of the list of nodes, and no lock. [Initial] and [Rebalance] are pure
// functions that compute placements.
package table
