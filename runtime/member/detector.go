package member

import (
	"context"
	"time"
)

// Detector detects the failures of the other nodes of a cluster. [New] returns the
// implementation of this package. Package memberlist in this folder has another one. Its
// methods may be called from any goroutine, also by the observer of its events.
type Detector interface {
	// Start begins to take part in the cluster. It must be called once. It does not wait
	// for other nodes.
	Start() error

	// Members returns all known members, including this node, by name.
	Members() []Member

	// Fenced reports whether this node reaches no majority of the known members. A fenced
	// node must not start recovery.
	Fenced() bool

	// Heard reports that a message of a node arrived. It only sets a flag, which takes about
	// 100 ns, so it may be called for every frame of messages.
	Heard(name string)

	// Remove notes that a dead member will not come back, so that it does not count for
	// the majority any more. It fails with ErrUnknown or ErrAlive.
	Remove(name string) error

	// Leave tells the other nodes that this node ends on purpose. It returns when enough
	// of them have confirmed, or with an error when ctx ends. Close must still be called.
	Leave(ctx context.Context) error

	// Started returns the time of Start. The times of members and events count from it.
	Started() time.Time

	// Close ends all goroutines. After it returns, the observer is not called any more.
	// Close must not be called by the observer.
	Close() error
}
