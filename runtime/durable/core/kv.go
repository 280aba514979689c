package core

import (
	"iter"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A Table is one of the tables of a store. Each has its own keys.
type Table uint8

// A KV is the transaction in which the core reads and writes a store: ordered tables of
// keys and values. It sees its own writes. A key or value that it returns is valid until
// the next write, and a caller must not change it. The core never keeps one.
//
// A KV reports no errors: a store whose transaction fails remembers the first error and
// refuses the commit, so that nothing of the transaction is kept and no result of it is
// answered.
type KV interface {
	// Get returns the value of a key, or nil if the table does not have the key.
	Get(t Table, key []byte) []byte
	// Put sets the value of a key. It keeps neither slice.
	Put(t Table, key, value []byte)
	// Delete deletes a key. Deleting a key that does not exist does nothing.
	Delete(t Table, key []byte)
	// Ascend yields the keys at or above from, in order. The loop may write only after it
	// ends.
	Ascend(t Table, from []byte) iter.Seq2[[]byte, []byte]
}

// An Instant is the time of a step. Both are milliseconds.
type Instant struct {
	// Wall is the time since 1970. Deadlines of promises, delays and schedules compare
	// with it, because clients give them as times of day.
	Wall int64
	// Run is the time for which the store was open, over all its processes. Leases, retries
	// and the age of unblock messages compare with it. So a clock that jumps ends no lease, and a worker does not
	// lose its lease because the server was down.
	Run int64
}

// valid returns the instant within the times that records can hold.
func (i Instant) valid() Instant {
	return Instant{Wall: min(max(i.Wall, 0), protocol.MaxTime), Run: min(max(i.Run, 0), protocol.MaxTime)}
}
