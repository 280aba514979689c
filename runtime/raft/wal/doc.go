// Package wal keeps what a RAFT node must not forget: entries, state and snapshots,
// in files that are checked to the last bit when they are opened.
//
//	log, stored, err := wal.Open("ledger", wal.Identity{Topology: "bank", Group: "ledger", Node: 1}, wal.Options{})
//	err = log.Save(state, entries, true)  // durable on return
//	err = log.SaveSnapshot(snapshot)      // durable; older entries go
//	err = log.Close()
//
// [Verify] and [Dump] read a log for people; a [Disk] pretends to be one in
// simulations, and crashes, fails, hangs and lies when it is told to.
//
// # Guarantees
//
// What may be lost, of what Save has returned for:
//
//	sync      kill of the process   power failure, crash of the system
//	always    nothing               nothing that was saved with sync
//	interval  nothing               the last interval
//	none      nothing               all since the last snapshot
//
// A snapshot is durable in every mode. An error is final: what is on the disk is not
// known any more, so all later calls fail, and the log must be opened again.
//
// Open returns exactly what was saved, or an error. What a crash leaves of the last
// record, sectors of which were never written, is cut off, and logged; it was not
// acknowledged. Anything else that is not as it was written is a [DamageError] with
// file and offset, and nothing is changed: a flipped bit, wherever it is, also in
// what no checksum covers (lengths, types, padding); a missing segment or snapshot.
// Only the zeros behind the end may have flipped bits, of which there are none after
// opening. What Open returns has been synced.
//
// Only regular files are opened: a named pipe or a device in their place is damage,
// and is found at once. Behind the last record a file may go on with 256 MiB of zeros,
// which is more than a crash can leave; a longer one is damage and is not read to its
// end: with a hole in it a file of any size takes no space on the disk.
//
// A directory belongs to one log at a time; a second Open fails at once. What a crash
// leaves half made is removed by the next Open.
//
// # When the disk is damaged
//
// Keep a copy. Where the newest snapshot's file is damaged, remove it: the older one
// and the entries since it are there, and nothing is lost. Else a node of a group is
// removed from it, and another added under a new name. Never start a node under its
// old name with an empty directory: what it has acknowledged is missing there, and
// the group may lose it. A log on one disk alone comes back from a backup.
//
// # Limits
//
// Nobody can tell a log from one that lost whole records at its end, or its last
// segments: a disk that says it has synced and has not, or a file cut at the end of a
// record. In RAFT the others know better.
//
// A power failure may write the sectors of a batch in any order. Where a whole record
// of it is behind a missing sector, it looks like damage, and the log is refused.
// Of a batch with one entry that comes only where its state, of 24 bytes, is in the
// missing sector and all of the entry is not. In mode none it is likelier, as
// batches are not synced one by one.
//
// After a failed sync the system may show what it has not written, until it starts
// again: begin again with another disk.
//
// An entry has at most 64 MiB less a few bytes. A log takes 32 MiB at the least: its
// segment, and the next.
//
// # Design
//
// Files are written by the log of etcd (go.etcd.io/etcd/server/v3/storage/wal, and
// its snapshots), and read by this package, which checks more than that does: it has
// one way to write each record, and accepts no other. So its Repair, which cuts at the
// first thing that it does not understand, is never called. The engine reads the last
// segment once more, since it does not write before it has read.
//
//	lock         held while the log is open
//	wal/*.wal    segments of 16 MiB, made beforehand
//	snap/*.snap  the newest two snapshots
//
// A shape is what a sequence of records amounts to. Who writes, who reads and who
// pretends follow it, so that what can be saved can be read. A state is written before
// the entries that come with it: what it says of them is a hint (which entries are
// committed), and so what a crash leaves of a batch mostly ends with a part of an
// entry.
package wal
