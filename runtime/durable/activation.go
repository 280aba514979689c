package durable

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// An Activation is an execution whose task was acquired and whose function is to run: for
// the first time, or again after a suspension or a crash. Exactly one of Run, Release and Abandon
// must be called, once.
type Activation struct {
	e     *execution
	taken atomic.Bool
}

// ID is the id of the execution.
func (a *Activation) ID() string { return a.e.promise.ID }

// Attempt is the number of the attempt at the execution.
func (a *Activation) Attempt() int { return a.e.journal.attempt() }

// Arg is the argument of the call, in JSON.
func (a *Activation) Arg() json.RawMessage { return a.e.arg }

// Promise is the promise of the execution.
func (a *Activation) Promise() *protocol.Promise { return a.e.promise }

// Run runs the function in a goroutine of its own, and returns when the function has ended
// or is suspended. ctx is the parent of the context of the function: when it ends, the task
// is released. So a processor instance that calls Run is occupied exactly while the
// function runs.
func (a *Activation) Run(ctx context.Context, h Handler) Outcome {
	e := a.e
	if !a.taken.CompareAndSwap(false, true) {
		return Outcome{State: Released, Attempt: e.journal.attempt(), Err: ErrStopping}
	}
	for {
		e.begin(ctx)
		done := make(chan struct{})
		go e.main(h, done)
		<-done
		if !e.again {
			break
		}
		e.worker.observe(e)
	}
	e.worker.finish(e)
	return e.outcome
}

// Release gives the execution to another worker.
func (a *Activation) Release() {
	if a.taken.CompareAndSwap(false, true) {
		_ = a.e.release(ErrStopping) // sets the outcome
		a.e.worker.finish(a.e)
	}
}

// An Outcome says how an activation ended.
type Outcome struct {
	State   State
	Attempt int   // the number of the attempt that ended, or is suspended
	Err     error // unless State is Completed or Suspended
}

// A State is the state of an execution after an activation.
type State int

const (
	Completed State = iota + 1 // the promise is resolved
	Failed                     // the promise is rejected with Err
	Suspended                  // the function waits for a promise or a timer
	Retrying                   // the attempt failed with Err, and another one follows
	Released                   // the task was returned to the group
	Lost                       // the task is not held any longer: Err is ErrCanceled, ErrTimedOut or ErrLeaseLost
	Halted                     // the function diverged
)

func (s State) String() string {
	names := [...]string{"", "completed", "failed", "suspended", "retrying", "released", "lost", "halted"}
	if s < 0 || int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}
