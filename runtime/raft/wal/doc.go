// Package wal keeps what a RAFT node must not forget: entries, state and snapshots,
// in files that are checked to the last bit when they are opened.
//
//	log, stored, err := wal.Open("ledger", wal.Identity{Topology: "bank", Group: "ledger", Node: 1}, wal.Options{})
//	err = log.Save(state, entries, true)  // durable on return
//	err = log.SaveSnapshot(snapshot)      // durable; older entries go
//	err = log.Close()
//
// [Verify] and [Dump] read a log for people; a [Disk] simulates one, and crashes,
// fails, hangs and lies on command.
//
// # Guarantees
//
// After Save has returned, this may be lost:
//
//	sync      kill of the process            power failure, crash of the system
//	always    what was saved without sync    what was saved without sync
//	interval  nothing                        the last interval
//	none      nothing                        all since the last snapshot
//
// A snapshot is durable in every mode. An error is final: the content of the disk is
// unknown then, so all later calls fail, and the log must be opened again.
//
// Open returns exactly what was saved, or an error. After a power failure the log
// opens, whichever sectors of unsynced records are missing: it ends before the first
// record that is incomplete, and the rest is cut off and logged. Any other difference
// is a [DamageError] with file and offset, and nothing is changed: a flipped bit,
// wherever it is, also where no checksum covers it (lengths, types, padding); a missing
// sector of synced records; a missing segment or snapshot; a segment that is shorter
// than it was made. Only the zeros behind the last
// record may have flipped bits; opening the log makes them zero again. All
// that Open returns has been synced.
//
// # Snapshots
//
// SaveSnapshot takes a snapshot whose state is in its Data, up to 2 GiB. CreateSnapshot
// writes a larger one as a stream: a small head, and a body of up to 64 GiB, which is
// synced every 16 MiB, and read back before it takes the place of another. Saves go on in
// the meantime. Open checks the head of the newest snapshot. Its body is checked when it
// is read, before any of it is returned; Verify reads everything. A snapshot that is open
// can be read to its end after newer ones have replaced it, where the system keeps files
// that are open.
//
// # Files
//
// Only regular files are opened: a named pipe or a device in their place is damage,
// and is found at once. Behind the last record a file may go on with 256 MiB of zeros,
// which is more than a crash can leave; a longer one is damage and is not read to its
// end: with a hole in it a file of any size takes no space on the disk.
//
// A directory belongs to one log at a time; a second Open fails at once. Files that a
// crash leaves half made are removed by the next Open.
//
// # When the disk is damaged
//
// Keep a copy. If the newest snapshot's file is damaged, remove it: the older one
// and the entries since it are there, and nothing is lost. Otherwise remove the node from
// its group, empty its directory, and add it again. Package raft does not start a member
// with an empty directory: what it has acknowledged is missing there. A log on one disk
// alone comes back from a backup.
//
// # Limits
//
// A log that has lost whole records at its end cannot be told from a log that never had
// them. The same is true of the last save, and only of the last one, if sectors of it are
// missing: a power failure during the save leaves the same. A log that was closed ends
// with a mark, which protects its last save, too. So if a disk acknowledges a sync that it
// has not done, the next start notices it only if a later save has reached the disk.
// In RAFT the other nodes notice it.
//
// In the modes interval and none a new segment has its name before its first records
// are synced. If it holds no record at all, it counts as never synced.
//
// After a failed sync the system may show data that it has not written, until it starts
// again: begin again with another disk.
//
// An entry has at most 64 MiB less a few bytes. A log takes at least 32 MiB: its
// segment, and the next.
//
// A version of this package without marks refuses a log with marks as damaged.
//
// # Design
//
// Files are written by the log of etcd (go.etcd.io/etcd/server/v3/storage/wal, and
// its snapshots), and read by this package, which checks more than etcd does: each
// record has one form, and no other is accepted. So etcd's Repair, which cuts at the
// first record that it does not understand, is never called. The engine reads the last
// segment once more, since it does not write before it has read.
//
//	lock         held while the log is open
//	wal/*.wal    segments of 16 MiB, made beforehand
//	snap/*.snap  the newest two snapshots: etcd's format, or one with a body (snapshotbody.go)
//	snap/*.tmp   snapshots that are being written
//
// Every save begins with a state that carries a mark: which record it is, and how many
// records before it were synced when it was written. If a record is incomplete, a mark
// behind it decides: if it says that the record was synced, that is damage. If no mark
// says so, a power failure has come before the sync. docs/decisions/0021 has the
// reasons, and the file mark.go the format.
//
// A segment has its full length, durably, before it has its name, in every mode. So a
// shorter one is damage.
//
// A shape is what a sequence of records amounts to. Writer, reader and simulated disk
// follow it, so that what can be saved can be read. A state is written before
// the entries that come with it, without calling them committed: if they do not survive
// a crash, the entries in their place are not committed either.
package wal
