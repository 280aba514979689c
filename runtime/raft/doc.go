// Package raft keeps a state machine on one disk, or on several nodes, with etcd's
// implementation of the RAFT consensus (rast.md 2.15 and 2.16; Ongaro's thesis).
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
// [Core] is a node without I/O: it takes ticks, messages, proposals and reads, and
// returns [Effects]. It has no goroutine, no clock and no disk. [Node] drives a Core with
// a log ([github.com/topogen/topogen/runtime/raft/wal]) and a transport. The state machine
// runs in another goroutine, so a slow Update, Read or snapshot does not keep the node
// from its peers. [Machine] is the typed layer that generated code and users call.
//
// # Guarantees
//
// An update that was acknowledged survives every crash of fewer than half of the
// members, and is applied once on each, in one order. A read sees all updates that were
// acknowledged before it began, on any member. A node repeats a proposal until it is
// answered, and a session keeps the update from being applied twice. With Sync other
// than wal.Always, which only a group of one member may have, a crash of the host loses
// updates that were not synced yet.
//
// These guarantees rest on one order: entries and votes are durable before a message
// promises them, and an entry is committed before it is applied. A failed write ends the
// node; nothing is written again to a file whose sync has failed.
//
// # Limits
//
// A group of several members begins when all first members run and have the same Peers.
// Members with a valid certificate are trusted: a member that was taken over can end the
// others.
//
// A member belongs to its disk. With an empty disk it does not start: remove it, empty
// its folder, and add it again. If a disk has come back in an older state, from a copy,
// that is noticed only if a leader remembers what the member has acknowledged.
//
// The state is kept in memory. While a snapshot of it is encoded, no update is applied on
// that node, unless the state has a method Freeze (see fsm.Freezer); members take their
// snapshots at different times. The state in a snapshot has at most 64 GiB. It is written
// to the disk and sent to other members in parts.
package raft
