package topo

import (
	"errors"
	"fmt"
	"time"
)

// Results of Ping. If Ping returns nil, there may be more to send, and Ping is called
// again soon. Any other error is a failure.
var (
	// Done: the instance has nothing more to send on its own. Ping is not called again.
	//
	//lint:ignore ST1012 it is not a failure, as io.EOF is not one
	Done = errors.New("topo: done")
	// Idle: the instance has nothing to send now. Ping is called again after the next
	// message, or after a pause of 1 ms, which doubles up to 100 ms while Ping returns
	// Idle. If there are more than 2,000 idle instances, the pause is longer: a
	// topology calls at most 20,000 such Pings a second.
	//
	//lint:ignore ST1012 it is not a failure, as io.EOF is not one
	Idle = errors.New("topo: idle")
)

// Errors of a send.
var (
	// ErrFull: the queue of an edge with full: fail is full. The message was not sent
	// along any edge.
	ErrFull = errors.New("topo: queue is full")
	// ErrStopping: the topology is draining or has ended, and does not accept messages
	// from outside.
	ErrStopping = errors.New("topo: topology is stopping")
	// ErrClosed: the external processor was closed.
	ErrClosed = errors.New("topo: sender is closed")
	// ErrFailed: an Ask has no reply, because the handler failed and the message is not
	// handled again, or because the message or its reply was lost. The error wraps the
	// cause.
	ErrFailed = errors.New("topo: the Ask failed")
	// ErrNoInstance: the route of an edge returned an index that is out of range. The
	// message was counted as dropped on that edge, and was sent along all other edges.
	ErrNoInstance = errors.New("topo: no such instance")
)

// PartialError is the error of an Ask that goes to several instances, if some of them have
// not answered. Ask returns it with the joined replies of the others.
type PartialError struct {
	Answered int   // how many instances have answered
	Of       int   // to how many instances the message was sent
	Err      error // why Ask did not wait for more, or why the first of the others has not answered
}

// Error says how many instances have answered.
func (e *PartialError) Error() string {
	return fmt.Sprintf("topo: %d of %d instances have answered: %v", e.Answered, e.Of, e.Err)
}

// Unwrap returns e.Err.
func (e *PartialError) Unwrap() error { return e.Err }

// Tick is the message of a timer.
type Tick struct {
	Time time.Time // when the tick was due; the handler may be called later
	N    uint64    // 1 for the first tick; skipped ticks are counted, so a gap shows them
}

// Instance identifies the instance that a constructor makes.
type Instance struct {
	Processor string // name in the topology file
	Index     int    // 0 … Number-1
	Number    int    // how many instances the processor has
	token     uint64
}
