package durable

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/internal/attempt"
	"github.com/topogen/topogen/runtime/internal/backoff"
)

const (
	// heartbeatsPerLease is how many heartbeats a worker sends in a lease, so that one of
	// them may be lost.
	heartbeatsPerLease = 3
	// heartbeatTasks is how many tasks a heartbeat names at most.
	heartbeatTasks = 100
	// checkPeriod is how often the worker asks whether it still holds the tasks that run
	// for longer than this. A heartbeat has no answer, so this is how a canceled promise
	// is noticed while a step runs.
	checkPeriod = 2 * time.Second
	// Delays before an operation is repeated that had no answer.
	repeatFirst = 50 * time.Millisecond
	repeatMax   = 2 * time.Second
)

// A leaseState says whether an execution may go on.
type leaseState int

const (
	leaseHeld leaseState = iota
	leaseLost
	leaseStopping
)

// leaseState compares the lease with the clock of this process, which goes on while the
// process is paused. So a worker that returns from a pause does not begin a step.
func (w *Worker) leaseState(e *execution) leaseState {
	switch {
	case w.leaseLeft(e) <= 0:
		return leaseLost
	case w.stopping.Load():
		return leaseStopping
	default:
		return leaseHeld
	}
}

// leaseLeft returns the time until the lease ends.
func (w *Worker) leaseLeft(e *execution) time.Duration {
	until := e.leaseUntil.Load()
	if until == 0 { // a replay has no lease
		return math.MaxInt64
	}
	return time.Duration(until) - w.now().Sub(w.epoch)
}

// contextOf is the context of a function.
func (w *Worker) contextOf(parent context.Context, e *execution) (context.Context, context.CancelCauseFunc) {
	if n := e.journal.attempt(); n > 1 {
		parent = attempt.With(parent, n)
	}
	ctx, cancel := context.WithCancelCause(parent)
	if !w.config.Manual && e.finished == nil { // a replay may come after the deadline
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, time.UnixMilli(e.promise.TimeoutAt), ErrTimedOut)
		canceled := cancel
		cancel = func(cause error) { canceled(cause); stop() }
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e.end = cancel
	if e.endCause != nil {
		cancel(e.endCause)
	}
	return ctx, cancel
}

// endContext ends the context of an execution from another goroutine.
func (w *Worker) endContext(e *execution, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.endCause == nil {
		e.endCause = cause
	}
	if e.end != nil {
		e.end(cause)
	}
}

// heldExecutions are the executions whose tasks the worker holds.
func (w *Worker) heldExecutions() []*execution {
	w.mu.Lock()
	defer w.mu.Unlock()
	es := make([]*execution, 0, len(w.held))
	for e := range w.held {
		es = append(es, e)
	}
	return es
}

// heartbeat extends the leases of all tasks that the worker holds. The server ignores tasks
// whose lease has ended, and does not say so. A lease counts as extended only if it had not
// ended when the answer came, because then it had not ended on the server either.
func (w *Worker) heartbeat(ctx context.Context) {
	es := w.heldExecutions()
	for len(es) > 0 {
		part := es[:min(len(es), heartbeatTasks)]
		es = es[len(part):]
		op := protocol.TaskHeartbeat{PID: w.config.PID}
		for _, e := range part {
			op.Tasks = append(op.Tasks, e.task)
		}
		sent := w.now()
		if result, err := w.backend.Do(ctx, op); err != nil || result.Status != protocol.OK {
			w.log.Warn("durable: a heartbeat failed", "tasks", len(op.Tasks), "status", result.Status, "error", err)
			continue
		}
		for _, e := range part {
			if w.leaseState(e) != leaseLost {
				e.leaseUntil.Store(int64(sent.Add(w.config.Lease).Sub(w.epoch)))
			}
		}
	}
	w.expire()
	w.expireAbandoned()
}

// expire ends the contexts of the executions whose lease has ended by the clock of this
// process.
func (w *Worker) expire() {
	for _, e := range w.heldExecutions() {
		if w.leaseState(e) == leaseLost {
			w.endContext(e, ErrLeaseLost)
		}
	}
}

// check finds tasks that the worker does not hold any longer.
func (w *Worker) check(ctx context.Context) {
	for _, e := range w.heldExecutions() {
		if w.now().Sub(e.acquired) < checkPeriod {
			continue
		}
		result, err := w.backend.Do(ctx, protocol.TaskGet{ID: e.task.ID})
		if err != nil || result.Status != protocol.OK && result.Status != protocol.NotFound {
			continue // a heartbeat reports it
		}
		if t := result.Task; t != nil && t.State == protocol.TaskAcquired && t.Version == e.task.Version && t.PID != nil && *t.PID == w.config.PID {
			continue
		}
		cause := ErrLeaseLost
		if result, err := w.backend.Do(ctx, protocol.PromiseGet{ID: e.task.ID}); err == nil && result.Promise != nil {
			cause = causeOf(result.Promise.State)
		}
		if cause == ErrTimedOut && w.now().UnixMilli() >= e.promise.TimeoutAt {
			continue // the context ends by itself, with DeadlineExceeded
		}
		w.endContext(e, cause)
	}
}

// do carries out an operation, and repeats it until there is an answer or ctx ends. It does
// not repeat it after ErrStopping, with which a backend says that it will not answer again.
func (w *Worker) do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	result, _, err := w.doOften(ctx, op)
	return result, err
}

// doOften is do, and reports whether the operation was repeated: then its effect may come
// from an earlier time.
func (w *Worker) doOften(ctx context.Context, op protocol.Operation) (result protocol.Result, repeated bool, err error) {
	results, times, err := w.repeat(ctx, nil, []protocol.Operation{op})
	if err != nil {
		return protocol.Result{}, times > 1, err
	}
	return results[0], times > 1, nil
}

// doAll carries out operations of an execution, and repeats them until there is an answer
// or its lease ends.
func (w *Worker) doAll(e *execution, ops []protocol.Operation) ([]protocol.Result, error) {
	results, _, err := w.repeat(w.ctx, e, ops)
	return results, err
}

// repeat returns the results of operations, and how often it has tried them. An execution that is not nil bounds it by
// the lease.
func (w *Worker) repeat(ctx context.Context, e *execution, ops []protocol.Operation) (results []protocol.Result, times int, err error) {
	for times = 1; ; times++ {
		if e != nil && w.leaseState(e) == leaseLost {
			return nil, times - 1, ErrLeaseLost
		}
		results, err := doAll(ctx, w.backend, ops)
		if err == nil {
			err = unavailable(results, len(ops))
		}
		if err == nil {
			return results, times, nil
		}
		if ctx.Err() != nil {
			return nil, times, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		if w.config.Manual || errors.Is(err, ErrStopping) {
			return nil, times, err
		}
		pause := backoff.Delay(repeatFirst, repeatMax, 0.5, times, w.config.Chance)
		if e != nil {
			pause = min(pause, w.leaseLeft(e))
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, times, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-w.ctx.Done():
			timer.Stop()
			return nil, times, fmt.Errorf("%w: %w", ErrStopping, err)
		}
	}
}

// unavailable is the error of results that are not answers of the protocol.
func unavailable(results []protocol.Result, n int) error {
	if len(results) != n {
		return fmt.Errorf("%w: %d results for %d operations", ErrUnavailable, len(results), n)
	}
	for _, r := range results {
		switch r.Status {
		case protocol.Internal, protocol.Unavailable, protocol.TooMany:
			return fmt.Errorf("%w: %s", ErrUnavailable, r.Error)
		case protocol.Unauthorized, protocol.Forbidden:
			return fmt.Errorf("%w: %s", ErrUnavailable, r.Error)
		}
	}
	return nil
}

// releaseTask returns a task to its group.
func (w *Worker) releaseTask(ref protocol.TaskRef) error {
	result, err := w.backend.Do(context.WithoutCancel(w.ctx), protocol.TaskRelease(ref))
	if err == nil && result.Status != protocol.OK && result.Status != protocol.Conflict {
		err = errors.New(result.Error)
	}
	return err
}
