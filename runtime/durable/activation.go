package durable

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// An Activation is an execution whose task was acquired and whose function is to run: for
// the first time, or again after a suspension or a crash. Exactly one of Run, Release and Abandon
// must be called, once. The worker releases an abandoned one when it is closed.
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

// abandonedMax is how many abandoned executions of a worker hold no slot of Config.Running and of the
// limits. Each costs a few hundred bytes, and a hundredth of a heartbeat.
const abandonedMax = 10_000

// Abandon keeps the task without running the function, until the worker is closed: then another
// worker continues it. Callers that are not durable functions get the error in place of the result.
// Other executions get its slot. Neither Run nor Release must be called.
func (a *Activation) Abandon(err error) {
	w, e := a.e.worker, a.e
	w.mu.Lock()
	w.abandoned[a.ID()], e.abandoned = e, err
	if len(w.abandoned) <= abandonedMax && e.item != nil {
		w.queue.done(e.item, true, w.now())
		e.item, e.arg, e.journal = nil, nil, journal{}
	}
	w.mu.Unlock()
	w.wake(a.ID())
	if !w.config.Manual {
		w.pump()
	}
}

func (w *Worker) isAbandoned(e *execution) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return e.abandoned != nil
}

// forgetAbandoned forgets abandoned executions whose tasks the worker does not hold any longer, or
// whose promises have reached their deadlines.
func (w *Worker) forgetAbandoned() {
	for _, e := range w.heldExecutions() {
		ended := w.leaseState(e) == leaseLost || w.now().UnixMilli() >= e.promise.TimeoutAt
		if ended && w.isAbandoned(e) && e.activation.taken.CompareAndSwap(false, true) {
			w.finish(e)
		}
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
