// Package raft keeps the address table of a cluster in its nodes, with the state machine
// of runtime/raft. It is the engine of `addresses: raft`.
//
//	t, err := raft.Open(raft.Config{
//		Topology: "orders", Node: "n1", Address: "10.0.0.1:7400",
//		First: map[string]string{"n1": "10.0.0.1:7400", "n2": "10.0.0.2:7400", "n3": "10.0.0.3:7400"},
//		Plan: plan, Dir: "./node", Transport: transport,
//	})
//
// # Members
//
// The first nodes vote. All of them must run once to found the group. A node that starts
// later asks the first nodes, and the leader adds it as a learner: it receives a snapshot
// and the log after it, and has no vote. It may propose transactions like all others.
//
// A node that returns with its folder continues with its log. A node that returns with an
// empty folder under an old name has a new id. The leader removes the old id from the
// group and adds the new one as a learner, unless the old id still sends messages: then
// two processes have the same name, and the new one ends with table.ErrRefused. A removed
// id never votes again. The old folder cannot be used any more: a process with it ends
// with table.ErrSuperseded.
//
// A node that has left the table ([table.Leave]) is removed from the group as soon as it is
// silent, and removes its log when it closes its table. Its next process joins as a new node, also
// with the old folder. A node with a new name may have the address of a node that has left. It is
// refused if the other node is a member.
//
// A node that runs another plan is refused with table.ErrPlan before it becomes a member.
//
// # Replaced voters
//
// The leader keeps as many voters as there are first nodes. It looks at the members once
// per election timeout:
//
//  1. A voter for which Config.Gone has returned true, and that has sent no message, for
//     Config.ReplaceAfter (a minute) is removed, and a learner gets a vote, both in one
//     change. A node that has left, or was forgotten by the table, counts as gone.
//  2. While there are fewer voters than first nodes, a learner gets a vote. First nodes
//     come before others, and then the order is by name. The learner must lack fewer than
//     1,024 entries. If it gets no vote for Config.ReplaceAfter, the next one is tried.
//  3. A learner that was gone and silent for as long is removed.
//
// A node that has left is not waited for: it is removed when it was silent twice.
//
// Without a learner, a voter that is gone remains a voter. A node that only crashed is
// never gone: it comes back with its log. With fewer than half of the voters no
// transaction is possible, and the leader cannot replace voters. Lookups still work.
//
// # Leases
//
// A holder asks the leader for a renewal. The leader writes the renewals of all nodes as one
// command, see [table.Replica.RenewTogether]. The holder finds it in its replica.
//
// # Guarantees
//
// All guarantees of package table. A revision is the term and the index of the entry in
// the log of the group. An acknowledged transaction survives the crash of a minority of
// the voters. The log is synced before a transaction is acknowledged, and before a replica
// applies it. Sync asks a majority.
//
// # Limits
//
// A group has at most 64 members. A full disk or a failed sync ends the table of the node;
// Err returns the reason. The table uses two groups of the transport, whose numbers are
// made of the names of the topology and of Config.Group. It adds peers to the transport
// and removes none.
package raft
