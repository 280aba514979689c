package piper

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Processor describes one processor to New.
type Processor struct {
	Name     string
	Group    int // index of its strongly connected component, upstream first
	Blocking bool
	External bool
	Ping     bool // has the method
	Serve    bool
	Finish   bool
	Stays    bool   // it is used from outside: its group is open until Run's context ends
	Events   bool   // hears what becomes of its inputs
	Watch    *Watch // nil: an instance that fails ends the topology

	// Instances points to an array with an element for each instance: a struct with the
	// fields unit, out and p. New is the function of Processors that makes what p points
	// to; where it is nil Default does, and where that is nil, too, it is a zero value.
	// An external processor has no instances.
	Instances, New, Default any
}

// Edge describes one edge to New.
type Edge struct {
	From, To int // indices of processors; From is -1 for a timer
	Message  string
	Capacity int
	Full     Policy        // Wait pauses the instance that sends; the others do not
	Every    time.Duration // of a timer
}

type processor struct {
	Processor
	pool          *Pool
	index         int
	group         *group
	units         []*Unit
	hungInstances atomic.Int32 // instances that left the pool because a handler hung
	first         int          // the rebalancer's number of its first instance
	warned        atomic.Bool
	unpaidReplies atomic.Int64 // Owe without Paid yet
	holds         atomic.Int64 // topo.Hold without release yet
	boxes         []eventBox   // of each instance, where Events
	watches       []*watch     // of each instance, where Watch is not nil
	faults        *faults      // where one of the two is there
	wakeups       []wakeup     // of each instance, where Events or Watch

	contextsOnce sync.Once
	contexts     []context.Context // of each instance, where a handler has asked for it
}

type edge struct {
	Edge
	inCycle   bool
	refused   atomic.Uint64 // sent to no instance: the id of its route was out of range
	discarded atomic.Uint64 // of those taken: for an instance that has failed for good
	late      atomic.Uint64 // sent after the call that the sender was for
	closed    atomic.Bool   // nothing more will come: who hears what becomes of inputs was told, or will be
}
