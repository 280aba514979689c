// Package store keeps the tables of durable promises: on disk, or in memory.
//
//	s, err := store.Open("promises", store.Options{}) // or store.NewMemory()
//	err = s.Update(func(tx store.Tx) error {
//		result, effects = c.Step(tx, operation, now)
//		return nil
//	})
//	err = s.Close()
//
// [Verify] reads a store and reports damage, and [OpenReadOnly] opens it without changing it.
// [Disk.Backup] writes a store that is in use to a file, and [Restore] makes a store of it.
//
// # Guarantees
//
// When Update has returned nil, its changes survive a kill of the process and a failure of
// the power. A transaction that did not commit leaves no trace. A transaction that changed
// nothing does not write, so it takes no sync. Only the first Update always makes a commit. When View has returned, what it read
// survives too.
//
// Open returns exactly the records of the last commit, or an error. It reads the whole
// file from the disk first, and refuses one with any of these, with file, page and key in a
// [DamageError]:
//
//   - a flipped bit in a record, in the structure of the pages, or in the list of free pages
//   - a page that was not written, was written in part, was written to another place, or is
//     an older version of itself
//   - a record that is missing, although all others are intact
//   - a file that is shorter than when it was written
//
// An error while the file is read is not damage: Open returns it and changes nothing.
//
// If the file is removed or replaced while the store is open, the next Update fails, and the
// store with it.
//
// Each record carries a checksum, which each read checks. If a read finds damage, the store
// fails, because it could answer from a state that never was.
//
// If the disk is full, Update returns [ErrFull] and nothing is lost. Views still work, and
// updates work again as soon as there is space. After an error of a sync the store fails at
// once, and the process must open it again. Linux then has pages in memory that the disk does
// not have, and counts them as written. So Open makes the system forget the file before it
// reads it. Where that is impossible, a store whose sync has failed is refused until the
// computer was restarted.
//
// Only one process at a time can open a directory. A second Open fails at once, and its
// message names the process that has the store. Several can read it with OpenReadOnly while
// none has it open.
//
// # Limits
//
// Open reads the file from the disk: about a second for each GiB, and twice as long after a
// kill, because only Close writes the list of free pages. Options.TrustFile skips this for a
// store that was closed.
//
// A store of version 1 of the format has no numbers of commits. If a disk loses a root page
// after such a store was changed to version 2, an old root page of version 1 is not noticed.
//
// A disk must write a sector of 512 bytes entirely or not at all. If it writes half of the
// sector of a meta page when the power fails, the store is refused.
//
// If the disk acknowledges the meta page of a commit and loses it, and the process is killed
// before the next commit, the file looks as before the commit. After Close it does not: Close
// makes a second commit with the same pages.
//
// A page that is damaged while the store is open is found by the checksums of the records,
// or as a panic of bbolt, which becomes an error. bbolt follows the numbers in its pages
// without checks, so damage can then also end the process. The next Open finds it.
//
// A key has 1 byte to 32 KiB, a value at most 256 MiB.
//
// # Design
//
// bbolt writes the file: a B+ tree of pages that are never overwritten while they are
// valid, and two meta pages that are written in turn.
//
//	lock           held while the store is open; names the process, and notes a failed sync
//	promises.db    the file
//	promises.new   a file that is being created
//
// Each table is a bucket. The bucket "meta" has the version of the format, the identity of
// the store, and for each table the number of its records and the sum of their checksums.
// The sum is what finds a missing record: it changes with each write by the checksums of
// the old and the new record, so it costs no scan. Beside it is the number of the commit. It
// finds a page of the root bucket that is an older version of itself: such a page leads to the
// intact tables of an earlier commit, because bbolt uses the pages of this commit again. A
// commit that was interrupted, or refused for lack of space, can leave a page with the number of
// the next commit. So the first Update, and the next one after a refusal, give this number to a
// commit without changes. Only if the disk loses a page of that commit, the interrupted commit can
// show; commits that were answered are not lost.
//
// A commit is bbolt's: it syncs the pages, writes the meta page, and syncs again.
// docs/decisions/0046 says what that costs.
//
// The file is bbolt's, so its tools can read it.
package store
