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
// nothing does not write, so it takes no sync.
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
// Each record carries a checksum, which each read checks. If a read finds damage, the store
// fails: running on would answer from a state that never was.
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
// Reading the file at Open takes about a second for each GiB in the memory of the system.
// Options.TrustFile skips it.
//
// If the disk loses the last commit completely, with its meta page, the file looks as
// before the commit. If one of the two meta pages is invalid, it may be because the power
// failed while it was written, or because the disk damaged the last commit later. Open
// refuses such a file, unless an operator sets Options.AcceptOlder.
//
// A page that is damaged while the store is open is found by the checksums of the records,
// or as a panic of bbolt, which becomes an error. bbolt follows the numbers in its pages
// without checks: damage can then also end the process. The next Open finds it.
//
// A key has 1 byte to 32 KiB, a value at most 256 MiB.
//
// # Design
//
// bbolt writes the file: a B+ tree of pages that are never overwritten while they are
// valid, and two meta pages that are written in turn. A commit is two syncs, of the pages
// and of the meta page.
//
//	lock           held while the store is open; names the process
//	promises.db    the file
//	promises.new   a file that is being created
//
// Each table is a bucket. The bucket "meta" has the version of the format, the identity of
// the store, and for each table the number of its records and the sum of their checksums.
// The sum is what finds a missing record: it changes with each write by the checksum of the
// old and the new record, so it costs no scan.
//
// The file is bbolt's, so its tools can read it.
package store
