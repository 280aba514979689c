package store

import (
	"fmt"
	"iter"

	"github.com/topogen/topogen/runtime/durable/core"
)

// Tables is the number of tables that a store has: 0 to Tables-1. The core uses fewer.
const Tables = 32

// A Store keeps ordered tables. Its methods may be called from several goroutines.
type Store interface {
	// Update calls f with a transaction that reads and writes, and commits it if f returns
	// nil and the transaction has no error. The commit is durable when Update returns nil.
	// Otherwise nothing of the transaction is kept. Updates run one at a time.
	//
	// An error that matches [ErrFull] leaves the store usable. After an error that matches
	// [ErrFailed] all calls fail.
	Update(f func(Tx) error) error
	// View calls f with a transaction that only reads. It sees the commits before the call
	// and no others. Views run at the same time as an Update. A View must not call Update,
	// and it should be short: the disk cannot reuse space that an open View may read.
	View(f func(Tx) error) error
	// Close waits for running transactions and closes the store. All later calls return
	// ErrClosed.
	Close() error
}

// A Tx is a transaction. It is valid until the function that received it returns, and
// only one goroutine may use it.
type Tx interface {
	core.KV
	// Err returns the first error of the transaction. After it, reads may find nothing.
	Err() error
	// Changed reports whether the transaction has written. A commit without changes does
	// not sync.
	Changed() bool
}

// A Record is a key and a value of a table.
type Record struct {
	Table      core.Table
	Key, Value []byte
}

// Records yields all records, ordered by table and key.
func Records(kv core.KV) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for t := range core.Table(Tables) {
			for k, v := range kv.Ascend(t, nil) {
				if !yield(Record{t, k, v}) {
					return
				}
			}
		}
	}
}

// checkKey returns the error of a key or a table that no store accepts.
func checkKey(t core.Table, key []byte) error {
	switch {
	case t >= Tables:
		return fmt.Errorf("store: table %d does not exist: the last table is %d", t, Tables-1)
	case len(key) == 0:
		return fmt.Errorf("store: a key of table %d is empty", t)
	case len(key) > KeyBytesMax:
		return fmt.Errorf("store: a key of table %d has %d bytes, the limit is %d", t, len(key), KeyBytesMax)
	}
	return nil
}

// Limits of records. KeyBytesMax is the limit of bbolt. ValueBytesMax is far above the
// largest request (4 MiB by default) and far below the limit of bbolt (2 GiB).
const (
	KeyBytesMax   = 32 << 10
	ValueBytesMax = 256 << 20
)

// checkRecord returns the error of a record that no store accepts.
func checkRecord(t core.Table, key, value []byte) error {
	if len(value) > ValueBytesMax {
		return fmt.Errorf("store: a value of table %d has %d bytes, the limit is %d", t, len(value), ValueBytesMax)
	}
	return checkKey(t, key)
}
