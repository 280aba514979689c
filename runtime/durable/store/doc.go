// Package store keeps the tables of durable promises: on disk, or in memory.
//
//	s, err := store.Open("promises", store.Options{}) // or store.NewMemory()
//	err = s.Update(func(tx store.Tx) error {
//		result, effects = c.Step(tx, operation, now)
//		return nil
//	})
//	err = s.Close()
//
// [Verify] reads a store and reports damage.
//
// # Guarantees
//
// When Update has returned nil, its changes survive a kill of the process and a failure of
// the power. A transaction that did not commit leaves no trace. A transaction that changed
// nothing does not write, so it takes no sync. When View has returned, what it read
// survives too.
//
// Open returns exactly the records of the last commit, or an error. It reads the whole
// file first and refuses one with any of these, with file, page and key in a
// [DamageError]:
//
//   - a flipped bit in a record, in the structure of the pages, or in the list of free pages
//   - a page that was not written, was written in part, or is an older version of itself
//   - a record that is missing, although all others are intact
//   - a file that is shorter than when it was written
//
// If the power failed during a commit, some of its pages can be missing. Open then
// continues with the commit before, and logs a warning. No answered commit is lost that
// way.
//
// If the file is removed or replaced while the store is open, the next Update fails, and the
// store with it.
//
// Each record carries a checksum, which each read checks. If a read finds damage, the store
// fails, because it could answer from a state that never was.
//
// If the disk is full, Update returns [ErrFull] and nothing is lost. Views still work, and
// updates work again as soon as there is space. After an error of a sync the store fails at
// once, and the process must open it again.
//
// Only one process at a time can open a directory. A second Open fails at once, and its
// message names the process that has the store.
//
// # Limits
//
// Open reads the file: about a second for each GiB that is in the memory of the system, and
// twice as long after a kill, because only Close writes the list of free pages.
// Options.TrustFile skips this for a store that was closed.
//
// After a kill of the process, damage in the pages of the last commit looks like a commit
// that the power interrupted: Open continues with the commit before, with a warning. After
// Close it does not: Close makes a second commit with the same pages.
//
// If the disk loses the last commit completely, with its meta page, the file looks as
// before the commit.
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
//	lock           held while the store is open; names the process
//	promises.db    the file
//	promises.new   a file that is being created
//
// Each table is a bucket. The bucket "meta" has the version of the format, the identity of
// the store, and for each table the number of its records and the sum of their checksums.
// The sum is what finds a missing record: it changes with each write by the checksums of
// the old and the new record, so it costs no scan.
//
// A commit syncs once. bbolt by itself syncs twice, first the pages and then the meta page,
// because it trusts a meta page. Here Open checks all pages that a meta page leads to. If
// some are missing, the commit was not answered, and all pages of the commit before are
// still there: they are reused only after the next sync. docs/decisions/0046 has more.
//
// The file is bbolt's, so its tools can read it.
package store
