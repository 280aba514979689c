package topo

import (
	"errors"
	"time"
)

// What Ping returns besides nil ("there may be more") and a failure.
var (
	// Done: this instance will not send of its own accord again; Ping is never
	// called again.
	//
	//lint:ignore ST1012 it is no failure, as io.EOF is none
	Done = errors.New("topo: done")
	// Idle: nothing to do now. Ping is called again after the next message, or
	// after 1 ms, doubling to 100 ms while it stays idle.
	//
	//lint:ignore ST1012 it is no failure, as io.EOF is none
	Idle = errors.New("topo: idle")
)

// What a send returns.
var (
	// ErrFull: a queue of an edge with full: fail has no room; nothing was sent
	// along any edge.
	ErrFull = errors.New("topo: queue is full")
	// ErrStopping: the topology is draining or has ended and takes no more
	// messages from outside.
	ErrStopping = errors.New("topo: topology is stopping")
	// ErrClosed: the external processor was closed before.
	ErrClosed = errors.New("topo: sender is closed")
	// ErrFailed: the processor that was asked has failed in handling the message,
	// and it is not handled again. The error wraps why.
	ErrFailed = errors.New("topo: the handler failed")
	// ErrNoInstance: the id that a route gave lies outside the instances of the
	// receiver; the message was counted as dropped.
	ErrNoInstance = errors.New("topo: no such instance")
)

// Tick is the message of a timer.
type Tick struct {
	Time time.Time // when the timer fired
	N    uint64    // 1 for the first tick; skipped ticks count, so gaps show
}

// Instance says which instance of a processor is being constructed.
type Instance struct {
	Processor string // name in the topology
	Index     int    // 0 … Number-1
	Number    int    // how many instances the processor has
}
