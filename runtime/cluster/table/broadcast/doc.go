// Package broadcast keeps the address table of a cluster with the protocol of the document
// (chimaera-reliability, section 2): each change is broadcast to all nodes, and each node
// logs it and then applies it. It is the engine of `addresses: broadcast`. It exists for
// comparison, and is not recommended: use raft or etcd.
//
//	t, err := broadcast.Open(broadcast.Config{
//		Topology: "orders", Node: "n1", Dir: "./node", Transport: transport, Alive: detector.Alive,
//	})
//
// # Protocol
//
// The document has neither an order of changes nor acknowledgements, so two nodes may end
// up with different tables. Here the node with the lowest name among the nodes that are
// alive orders the changes. It is the sequencer. It logs a change, sends it to all nodes
// that are alive, and waits until each of them has logged and applied it. Then it applies
// the change, answers, and begins the next one.
//
// A node that becomes the sequencer begins a new term. It collects the states of all nodes
// that are alive, merges them, and installs the result on all of them. It begins a further
// term when it sees a node that is not part of the term: the node may have been alone, with
// a table of its own. The state with the highest revision is the base, except that a state
// without a plan has no places. A container with a higher epoch in another state is taken
// from there, and so is a process that has joined later. If a container has the same epoch
// on different nodes, the base wins and the epoch grows.
//
// # Guarantees that are missing
//
// There is no majority. If the nodes disagree about which nodes are alive, there are two
// sequencers, for example on both sides of a cut. Then:
//
//   - Both sides accept conflicting transactions, and guards hold on both sides. After the
//     merge, acknowledged changes of one side are lost.
//   - A lease may have two holders. Tokens of leases may repeat.
//   - Sync only sees the changes of its own side.
//
// Also without a cut:
//
//   - A change is visible on some nodes before it is acknowledged, and also if it is never
//     acknowledged.
//   - A node that was not alive when a change was acknowledged may return when all other
//     nodes have stopped. The cluster then continues without the change.
//   - A node that the failure detector sees as alive and that does not answer stops all
//     changes, until the detector sees that it is dead.
//   - After a change of the sequencer, a transaction whose answer was lost may be applied a
//     second time if it is repeated. Guards prevent this.
//
// The other guarantees of package table hold while all nodes agree which nodes are alive:
// one order, all or nothing, log before memory, and durable changes. Epochs never
// decrease, also after a merge, but during a cut both sides may give the same epoch. So an epoch is
// not a fencing token with this engine.
//
// # Log
//
// The log of a node is DIR/wal/domain_table.0.0.NODE.bin. The document's file has records
// of 28 bytes without a header, length and checksum, and is not synced. This log has a
// header with a version, and frames with a length and a CRC-32C. Each frame is synced
// before the change is applied. A frame contains a transaction, with its term and index,
// and repeats up to 4,096 of its moves as records of 28 bytes. An incomplete frame at the
// end of the file is cut; all other damage is refused with the offset. After 16 MiB the
// log begins again with a snapshot. [ReadPlain] and [Places] read files of the document's
// form, in the order of the time stamps.
//
// # Limits
//
// One change at a time is broadcast, so the rate is limited by the slowest sync. A state
// travels in one message.
package broadcast
