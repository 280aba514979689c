package table

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Table is the address table on one node. Any goroutine may call its methods.
type Table interface {
	// Replica returns the table's copy on this node, for lookups and watches. It is the
	// same value for the life of the table.
	Replica() *Replica

	// Txn applies all changes if all guards hold, or nothing. When it returns without an
	// error, Replica contains the changes, and the returned revision is theirs. It waits
	// for the engine until ctx ends. Then the error matches ErrUnknown if the transaction
	// may have been applied.
	Txn(ctx context.Context, guards []Guard, changes []Change) (Revision, error)

	// Sync returns when Replica contains all transactions that were acknowledged on any
	// node before the call.
	Sync(ctx context.Context) error

	// Acquire acquires a named lease, and keeps it alive until it is released or lost. It
	// waits until ctx ends while another holder has the lease; then the error matches
	// ErrHeld. A holder that acquires its lease again gets it at once, and the earlier Lease
	// is lost. ttl is how long the lease remains after the holder has died.
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (*Lease, error)

	// Done returns a channel that is closed when the table has ended: after Close, or
	// because the engine failed. Err then returns the reason.
	Done() <-chan struct{}
	Err() error

	// Close ends the table on this node. It does not change the table. Leases that were
	// acquired here are lost.
	Close() error
}

// Waiter is a Table that can say what its transactions wait for.
type Waiter interface {
	// Waiting returns what the table waits for now, for example "an answer of etcd". It
	// returns "" if it waits for nothing. It does not wait itself.
	Waiting() string
}

// Grouped is implemented by a Table whose engine has members of its own.
type Grouped interface {
	// Group returns the names of the members. The engine removes a node that has left.
	Group() []string
}

// Resident is implemented by a Table that is in the folder of the node, and locks it.
type Resident interface {
	// Essential reports whether the table has no majority without this node. Then no other
	// process can enter under its name.
	Essential() bool
}

// Lossy is implemented by a Table whose engine may lose changes that it has acknowledged,
// for example after a cut between the nodes.
type Lossy interface {
	LosesChanges() bool
}

// Revision is the position of a transaction in the log of the table. Revisions are ordered
// by Index and Position; Term never decreases with them.
type Revision struct {
	Term     uint64 // of the leader; 0 for engines without terms
	Index    uint64 // of the log's entry; 0: before the first one
	Position uint32 // of the transaction in the entry, from 0
}

// Compare returns -1, 0 or 1, like cmp.Compare.
func (r Revision) Compare(o Revision) int {
	return cmp.Or(cmp.Compare(r.Index, o.Index), cmp.Compare(r.Position, o.Position))
}

// String formats the revision as TERM.INDEX.POSITION.
func (r Revision) String() string { return fmt.Sprintf("%d.%d.%d", r.Term, r.Index, r.Position) }
