package piper

import (
	"sync"
	"sync/atomic"
	"time"
)

// Supervisor decides what happens after instances end. supervise.Supervisor implements
// it. Its decisions depend only on earlier events. The pool calls it under a lock,
// applies the returned effects in order, and reports their results as further events.
type Supervisor interface {
	// Seed sets the seed of random delays. A Stepper calls it before the first Step.
	Seed(seed uint64)
	// Step handles an event. now is the time since the start of the topology. It
	// returns the effects to apply.
	Step(now time.Duration, e ChildEvent) []ChildEffect
}

// Child identifies an instance for a supervisor: the index of the processor and the
// index of the instance.
type Child struct{ Processor, Instance int }

// ChildEventKind is the kind of a ChildEvent.
type ChildEventKind uint8

const (
	ChildFailed     ChildEventKind = iota // by an error, a panic, or the end of its process; the instance has ended
	ChildHung                             // a call took too long; the instance was abandoned or its process killed
	ChildEnded                            // Serve returned nil, Ping returned Done, or its process ended and is not needed; after Serve and Ping it may still handle messages, and fail
	ChildStopped                          // the answer to EffectStop
	ChildNotStopped                       // the answer to EffectStop if its inputs were closed and drained before it was stopped: it runs on, and may fail
	ChildStarted                          // the answer to EffectStart: it runs
	ChildNotStarted                       // the answer to EffectStart if its constructor or Init failed or took too long; also after the first Init. Without an error: the instance was not started, because it has nothing left to do
	ChildDue                              // the delay of an EffectWait has passed
	ChildInputsDone                       // its inputs are closed and drained, or it has none and the topology stops: it must not be started again. It is not down, or it does not need Finish
)

// ChildEvent is an event of an instance.
type ChildEvent struct {
	Kind  ChildEventKind
	Child Child
	Err   error // for ChildFailed, ChildHung and ChildNotStarted
}

// ChildEffectKind is the kind of a ChildEffect.
type ChildEffectKind uint8

const (
	EffectWait   ChildEffectKind = iota // report ChildDue after Delay; replaces another wait of the child
	EffectStart                         // start a new instance of the child, which does not run; the answer is ChildStarted or ChildNotStarted
	EffectStop                          // end the child, which runs, is being started, or has ended; the answer is ChildStopped, ChildNotStopped, or the event of an end before that
	EffectDone                          // the child has ended without a failure: it will not send on its own again, unless it is started together with its restart group
	EffectGiveUp                        // the child has failed and is not restarted; the rest of the topology goes on
	EffectEnd                           // end the topology with Err
)

// ChildEffect is a decision of a supervisor.
type ChildEffect struct {
	Kind  ChildEffectKind
	Child Child
	Delay time.Duration // for EffectWait
	Err   error         // for EffectGiveUp and EffectEnd
}

// supervision follows the failures of watched instances: it reports them to the Supervisor and
// turns the effects into orders for the instances.
type supervision struct {
	pool         *Pool
	mu           sync.Mutex   // guards the orders of watched instances, and calls of the supervisor
	closed       bool         // Run is about to return
	abandonedNow atomic.Int32 // number of abandoned goroutines that have not returned
}
