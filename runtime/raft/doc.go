// Package raft keeps a state machine on disk, or on several machines, by etcd's
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
// [Core] is a node as a function: ticks, messages, proposals and reads in,
// [Effects] out; no goroutine, no clock, no disk. [Node] drives one with a log
// ([github.com/topogen/topogen/runtime/raft/wal]) and a transport. The state machine runs
// beside that: an Update, a Read or a snapshot that takes long keeps no node from its
// peers. [Machine] is
// the typed layer that generated code and users touch.
//
// # Guarantees
//
// An update that was acknowledged survives every crash of fewer than half of the
// members, and is applied once on each, in one order. A read sees all that was
// acknowledged before it began, on whatever member it runs. What is proposed is
// repeated until it is answered, and a session keeps what was applied from being
// applied again. With Sync other than wal.Always, which one member alone may have,
// a crash of the machine loses what was not written yet.
//
// All of it rests on one order: entries and votes are durable before a message
// tells of them, and what is applied was committed before. A failed write ends the
// node; nothing is written again to a file whose sync has failed.
//
// # Limits
//
// A group of several begins when all first members are there and have the same Peers.
// Members that hold a valid certificate are trusted: one that was taken over can end the
// others.
//
// A member belongs to its disk. With an empty disk it does not start: remove it, empty
// its folder, and add it again. A disk that has come back in an older state, from a copy,
// is found out only if a leader remembers what it has acknowledged. The state is
// kept in memory. While a snapshot of it is encoded, no update is applied on that node,
// unless the state has a method Freeze (see fsm.Freezer);
// members take their snapshots at different times. The state in a snapshot has at most
// 64 GiB. It goes to the disk and to others in parts.
package raft
