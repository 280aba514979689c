// Package raft keeps a state machine on one disk, or on several nodes with the Raft
// consensus algorithm. It uses etcd's implementation of Raft.
//
//	m, err := raft.New(raft.Config{
//		Topology: "bank", Group: "ledger", Node: "n1",
//		Peers: map[string]string{"n1": "10.0.0.1:7101", "n2": "10.0.0.2:7101", "n3": "10.0.0.3:7101"},
//		Dir:   "/var/lib/bank",
//	}, fsm.Definition[Accounts, Transfer, Balance]{Update: (*Transfer).Update, …})
//	…
//	err = m.Start(ctx, nil)
//	balance, err := m.Propose(ctx, Transfer{From: "ann", To: "bob", Cents: 100})
//	err = m.Read(ctx, func(a *Accounts) { balance = a.Cents["bob"] })
//
// Generated code and users call [Machine], the typed layer. [Core] is a node without I/O:
// it takes ticks, messages, proposals and reads, and returns [Effects]. It has no
// goroutine, clock or disk. [Node] drives a Core with a log
// ([github.com/topogen/topogen/runtime/raft/wal]) and a transport. The state machine runs
// in another goroutine, so that a slow Update, Read or snapshot does not delay the
// messages between nodes.
//
// # Guarantees
//
// An acknowledged update survives any crash of fewer than half of the members. All
// members apply the same updates in the same order, and each update once. A read on any
// member sees all updates that were acknowledged before the read began. A node repeats a
// proposal until it gets an answer. The session of the node makes sure that the update is
// applied only once. A group of one member may set Sync to a value other than wal.Always.
// Then a crash of the host loses the updates that were not synced yet.
//
// These guarantees depend on the order of the steps: entries and votes are durable before
// a message promises them, and an entry is committed before it is applied. A failed write
// ends the node. After a failed sync, nothing more is written to that file.
//
// # Limits
//
// A group of several members begins when all first members run and have the same Peers.
// Members with a valid certificate are trusted: an attacker who controls a member can
// stop the other members.
//
// A member belongs to its disk. It does not start with an empty disk: remove the member,
// empty its folder, and add it again. If a disk was restored to an older state, for
// example from a copy, the group detects this only if a leader knows which entries the
// member has acknowledged.
//
// The state is kept in memory. While a snapshot of the state is encoded, that node
// applies no update, unless the state has a method Freeze (see fsm.Freezer). The members
// take their snapshots at different times. The state in a snapshot has at most 64 GiB. It
// is written to the disk and sent to other members in parts.
package raft
