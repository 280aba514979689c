package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// An execution is one activation of a durable function: from the acquisition of its task
// until the function ends or is suspended. Its function runs in a goroutine that nothing
// else uses, so that runtime.Goexit can end it.
type execution struct {
	worker   *Worker
	function *Function
	backend  recorder
	task     protocol.TaskRef // at the version that this activation holds
	promise  *protocol.Promise
	origin   string
	arg      json.RawMessage

	ctx     context.Context
	cancel  context.CancelCauseFunc
	context functionContext

	activation *Activation
	item       *item // in the queue of the worker
	acquired   time.Time
	leaseUntil atomic.Int64            // nanoseconds since Worker.epoch
	end        context.CancelCauseFunc // guarded by Worker.mu, as endCause
	endCause   error
	finished   chan struct{} // closed at the end of a replay; nil otherwise

	// Used only by the goroutine of the function.
	journal  journal
	buffer   []byte                       // of the last decoded result
	complete bool                         // the journal has the children too
	position int                          // of the last durable call
	failed   int                          // the first position with a recorded failure, or 0
	settled  map[string]*protocol.Promise // promises that were settled during this activation
	versions map[string]int               // that Version returned

	goroutine uint64
	calling   atomic.Bool // a durable call is running
	phase     atomic.Int32
	misused   atomic.Pointer[error]
	fatal     error // why the attempt fails, although the function has not returned
	outcome   Outcome
	again     bool // the next attempt begins at once
}

// Phases of an execution.
const (
	running   = iota
	unwinding // runtime.Goexit is running the deferred functions
	over
)

// errExit means that the activation must end: outcome or fatal says why. It never reaches
// the user.
var errExit = errors.New("durable: the activation ends")

// begin prepares a run of the function.
func (e *execution) begin(parent context.Context) {
	e.ctx, e.cancel = e.worker.contextOf(parent, e)
	e.context = functionContext{e.ctx, e}
	e.position, e.failed, e.fatal, e.again, e.versions = 0, 0, nil, false, nil
	if e.settled == nil {
		e.settled = make(map[string]*protocol.Promise)
	}
	e.phase.Store(running)
	e.misused.Store(nil)
}

// main runs the function. It is the goroutine of the execution.
func (e *execution) main(h Handler, done chan<- struct{}) {
	defer close(done)
	e.goroutine = goroutineID()
	var result any
	var err error
	returned := false
	defer func() {
		if !returned {
			err = e.abnormal(recover())
		}
		e.conclude(result, err)
		e.phase.Store(over)
		e.cancel(ErrEnded)
	}()
	if err = e.awaitAttempt(); err == nil {
		result, err = h(&e.context, e.arg)
	}
	returned = true
}

// awaitAttempt waits for the end of the delay before the attempt. A promise for which an
// earlier attempt has waited may have resumed the task before.
func (e *execution) awaitAttempt() error {
	n := len(e.journal.begun)
	if n == 0 || e.journal.begun[n-1].State != protocol.Pending {
		return nil
	}
	return e.backend.suspend(e, e.journal.begun[n-1].ID)
}

// abnormal is the error of a function that did not return.
func (e *execution) abnormal(panicked any) error {
	if panicked != nil {
		err := &PanicError{Value: panicked, Stack: stack()}
		if e.phase.Load() == unwinding {
			// A deferred function panicked. The outcome is fixed already.
			e.worker.log.Error("durable: a deferred function panicked while its execution was suspended or ended", "id", e.promise.ID, "panic", err, "stack", string(err.Stack))
			return errExit
		}
		return err
	}
	if e.phase.Load() == unwinding {
		return errExit
	}
	return fmt.Errorf("durable: the function called runtime.Goexit")
}

// exit ends the goroutine of the function. Its deferred functions run; durable calls in
// them end at once. Code of the user cannot catch it, so that a suspended execution does
// not continue with a result that does not exist.
func (e *execution) exit() {
	e.phase.Store(unwinding)
	e.calling.Store(false)
	e.cancel(ErrEnded)
	runtime.Goexit()
}

// enter begins a durable call, which leave ends.
func (e *execution) enter() error {
	if phase := e.phase.Load(); phase != running {
		if phase == unwinding && goroutineID() == e.goroutine {
			runtime.Goexit()
		}
		return fmt.Errorf("%w: %s", ErrEnded, e.promise.ID)
	}
	if !e.calling.CompareAndSwap(false, true) {
		return e.misuse("a durable call is made while another one runs: inside a step, or in another goroutine")
	}
	return nil
}

func (e *execution) leave() { e.calling.Store(false) }

// misuse makes the attempt fail, even if the function ignores the returned error.
func (e *execution) misuse(reason string) error {
	err := fmt.Errorf("%w: %s: %s", ErrMisuse, e.promise.ID, reason)
	e.misused.CompareAndSwap(nil, &err)
	return err
}

// next moves to the next position and returns its record, or nil if there is none. The
// record has the given name; else the execution is halted.
func (e *execution) next(name string) (*protocol.Promise, slot, error) {
	e.position++
	s := e.journal.at(e.position)
	p := e.journal.records[s]
	if p == nil {
		if err := e.proceed(); err != nil {
			return nil, s, err
		}
		if p = e.journal.records[s]; p == nil {
			return nil, s, nil
		}
	}
	return p, s, e.same(p, name)
}

// same checks that a record is one of this execution, and has the name of the call that is made
// now. Another program may have made a promise with the id of a record.
func (e *execution) same(p *protocol.Promise, name string) error {
	if !e.journal.has(p) {
		return e.diverge(fmt.Sprintf("at position %d it calls %q, and the id %s of its record is taken: the promise was made by %s", e.position, name, p.ID, makerOf(p)))
	}
	if recorded := p.Tags[tagStep]; recorded != name {
		return e.diverge(fmt.Sprintf("at position %d it calls %q, and the record %s is of %q", e.position, name, p.ID, recorded))
	}
	return nil
}

// proceed checks that the execution may go beyond its records, and completes the journal.
func (e *execution) proceed() error {
	if goroutineID() != e.goroutine {
		return e.misuse("a durable call is made in a goroutine that does not run the function")
	}
	if e.position > e.worker.config.Records {
		e.fatal = Final(fmt.Errorf("%w: %s has reached the limit of %d. Let it start a child that continues its work", ErrTooLong, e.promise.ID, e.worker.config.Records))
		return errExit
	}
	if err := e.alive(); err != nil {
		return err
	}
	return e.load()
}

// alive checks that the lease is held and that the worker is not stopping.
func (e *execution) alive() error {
	if cause := context.Cause(e.ctx); cause != nil {
		return e.lost(cause)
	}
	switch e.worker.leaseState(e) {
	case leaseLost:
		return e.lost(ErrLeaseLost)
	case leaseStopping:
		return e.release(ErrStopping)
	}
	return nil
}

// load adds the children to the journal, once. The acquisition has returned the other
// records only, because a child has a branch of its own.
func (e *execution) load() error {
	if e.complete {
		return nil
	}
	children, err := e.backend.children(e)
	if err != nil {
		return err
	}
	for i := range children {
		p := &children[i]
		if s, retry, ok := e.journal.parse(p); ok && retry == 0 && e.journal.records[s] == nil {
			e.journal.records[s] = p
		}
	}
	e.complete = true
	return nil
}
