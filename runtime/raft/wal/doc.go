// Package wal stores the durable state of a Raft node: log entries, hard state and
// snapshots. The files are fully checked when they are opened.
//
//	log, stored, err := wal.Open("ledger", wal.Identity{Topology: "bank", Group: "ledger", Node: 1}, wal.Options{})
//	err = log.Save(state, entries, true)  // durable on return
//	err = log.SaveSnapshot(snapshot)      // durable; removes older entries
//	err = log.Close()
//
// [Verify] and [Dump] read a log and report what it contains. A [Disk] simulates a disk
// with one log. A test can make it crash, fail, hang or lose synced data.
//
// # Guarantees
//
// After Save has returned, these failures may lose data:
//
//	sync      kill of the process            power failure, crash of the system
//	always    data saved without sync        data saved without sync
//	interval  nothing                        data of the last interval
//	none      nothing                        all data since the last snapshot
//
// A snapshot is durable in every mode. An error is final: the content of the disk is
// unknown after it, so all later calls fail, and the log must be opened again.
//
// Open returns exactly the saved data, or an error. After a power failure the log opens,
// no matter which sectors of unsynced records are missing. The log then ends before the
// first incomplete record. Open removes the rest and logs a warning. Any other difference
// is a [DamageError] with file and offset, and Open changes nothing:
//
//   - a flipped bit, also in a place that no checksum covers (lengths, types, padding)
//   - a missing sector of synced records
//   - a missing segment or snapshot
//   - a segment that is shorter than when it was created
//
// Open does not report flipped bits in the zeros after the last record. It writes zeros
// there again. All data that Open returns has been synced.
//
// # Snapshots
//
// SaveSnapshot saves a snapshot whose state is in its Data, up to 2 GiB. CreateSnapshot
// writes a larger snapshot as a stream: a small head, and a body of up to 64 GiB. The body
// is synced every 16 MiB, and read back before the snapshot becomes the newest one. Other
// saves continue in the meantime. Open checks the head of the newest snapshot. A reader
// checks each part of the body before it returns it. Verify reads everything. A reader can
// read an open snapshot to its end even after newer snapshots have replaced it, if the
// operating system keeps open files.
//
// # Files
//
// Only regular files are opened. A named pipe or a device in place of a file is reported
// as damage immediately. At most 256 MiB of zeros may follow the last record, which is
// more than a crash can leave. A longer file is damaged. It is not read to its end,
// because a sparse file of any size takes no space on the disk.
//
// Only one log at a time can use a directory; a second Open fails at once. A closed log can
// be opened again at once, also while the process starts other processes. If a crash leaves
// incomplete files, the next Open removes them.
//
// # When the disk is damaged
//
// Keep a copy. If the file of the newest snapshot is damaged, remove it: the log still has
// the older snapshot and all entries since then, so nothing is lost. In all other cases
// remove the node from its group, empty its directory, and add the node again. Package
// raft does not start a member with an empty directory, because the entries that the
// member has acknowledged are missing there. If the group has only one node, restore a
// backup.
//
// An early version could leave a short segment if it was killed while it opened its log. If
// nothing else has shortened the file, truncate -s 16777216 FILE restores its length, but not
// the data at its end.
//
// # Limits
//
// The package cannot detect that whole records are missing at the end of a log, nor
// that sectors of the last save are missing: a power failure during that save leaves the
// same files. Close writes a mark at the end of the log, which also protects the last
// save. So if a disk acknowledges a sync but does not do it, the next start notices this
// only if a later save has reached the disk. In Raft the other nodes notice it.
//
// In the modes interval and none a new segment gets its name before its first records
// are synced. If it contains no record, Open assumes that it was never synced.
//
// After a failed sync the operating system may have data in memory that is not on the disk, and
// that it counts as written. Open drops the segments from the memory and reads the disk. On
// systems other than Linux, and on file systems without a call for this, restart the computer
// before you open the log again.
//
// An entry has at most 64 MiB minus a few bytes. A log takes at least 32 MiB: the current
// segment and the next one.
//
// A version of this package without marks reports a log with marks as damaged.
//
// # Design
//
// The log of etcd (go.etcd.io/etcd/server/v3/storage/wal, and its snapshots), called the
// engine here, writes the files. This package reads them, because it checks more than etcd
// does: each record has exactly one valid encoding. etcd's Repair is never called, because
// it cuts the log at the first record that it cannot parse. The engine reads the last
// segment a second time, because it must read before it can write.
//
//	lock         held while the log is open
//	wal/*.wal    segments of 16 MiB, allocated in advance
//	snap/*.snap  the newest two snapshots, in etcd's format or with a body (snapshotbody.go)
//	snap/*.tmp   snapshots that are being written
//
// Every save begins with a state record that carries a mark. The mark contains the number
// of its record, and how many records before it were synced when it was written. If a
// record is incomplete, the marks after it decide. If one of them shows that the record
// was synced, the log is damaged. Otherwise the power failed before the sync.
// docs/decisions/0021 explains the reasons, and the file mark.go describes the format.
//
// In every mode a segment has its full length, durably, before it gets its name. So a
// shorter segment is damaged.
//
// A summary is the result of a sequence of records, without the data of the entries.
// Writer, reader and simulated disk apply the same rules to it, so everything that can
// be saved can be read. A state is written before the entries of the same save, and its
// commit index does not include them: if these entries do not survive a crash, the
// entries that they would have replaced must not count as committed.
package wal
