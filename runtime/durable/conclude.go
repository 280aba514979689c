package durable

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/internal/backoff"
)

// conclude records how the function ended. It runs in the goroutine of the function and
// must not call exit.
func (e *execution) conclude(result any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			e.concludePanic(&PanicError{Value: panicked, Stack: stack()})
		}
	}()
	if e.calling.Load() && err == nil {
		err = e.misuse("the function returned while a durable call was running in another goroutine")
	}
	if misused := e.misused.Load(); misused != nil && err != errExit {
		err = Final(*misused) // another attempt would do the same
	}
	if err == errExit {
		if err = e.fatal; err == nil {
			return // the outcome is set
		}
	}
	if e.concluded(result, err) != errExit || e.fatal == nil || e.fatal == err {
		return
	}
	// The backend refused the result, for example because it is too large.
	if e.reject(e.fatal) == errExit && e.outcome.State == 0 {
		e.outcome = Outcome{State: Lost, Attempt: e.journal.attempt(), Err: e.fatal}
	}
}

// concludePanic rejects the promise of a function whose result, error or Rejecting panicked.
func (e *execution) concludePanic(err *PanicError) {
	e.worker.log.Error("durable: the end of an execution panicked", "id", e.promise.ID, "panic", err, "stack", string(err.Stack))
	e.outcome = Outcome{State: Lost, Attempt: e.journal.attempt(), Err: err}
	if e.backend.fulfill(e, protocol.Rejected, encodeError(recorded(err))) == nil {
		e.outcome = Outcome{State: Failed, Attempt: e.journal.attempt(), Err: err}
	}
}

func (e *execution) concluded(result any, err error) error {
	if cause := context.Cause(e.ctx); cause != nil && cause != ErrEnded && err != nil {
		return e.lost(cause) // err is probably the end of the context
	}
	if err != nil {
		return e.fail(err)
	}
	if err := e.atEnd(); err != nil {
		return err
	}
	value, err := encode(result)
	if err != nil {
		return e.fail(Final(fmt.Errorf("the result cannot be encoded as JSON: %w", err)))
	}
	if err := e.backend.fulfill(e, protocol.Resolved, value); err != nil {
		return err
	}
	e.outcome = Outcome{State: Completed, Attempt: e.journal.attempt()}
	return nil
}

// atEnd checks that the function has used all of its records.
func (e *execution) atEnd() error {
	if err := e.load(); err != nil {
		return err
	}
	if p := e.journal.records[e.journal.at(e.position+1)]; p != nil {
		return e.diverge(fmt.Sprintf("it returns after position %d, and the record %s is of %q", e.position, p.ID, p.Tags[tagStep]))
	}
	return nil
}

// fail begins the next attempt, or rejects the promise.
func (e *execution) fail(err error) error {
	attempt := e.journal.attempt()
	if attempt >= e.function.Retry.Attempts || !retryable(err) {
		return e.reject(err)
	}
	from := e.failed
	if from == 0 {
		from = e.position + 1
	}
	begin := e.timerOf(e.journal.attemptID(attempt+1), nameAttempt, e.function.Retry.delay(attempt, e.worker.config.Chance))
	begin.Param = encodeError(recorded(err))
	begin.Tags[tagFrom] = strconv.Itoa(from)
	p, suspended := e.backend.suspendUntil(e, begin)
	if suspended != nil {
		if suspended == errExit && e.outcome.State == Suspended {
			e.outcome = Outcome{State: Retrying, Attempt: attempt, Err: err}
		}
		return suspended
	}
	e.journal.begin(p)
	e.again = true
	e.outcome = Outcome{State: Retrying, Attempt: attempt, Err: err}
	return nil
}

// reject records the failure of the execution.
func (e *execution) reject(err error) error {
	if f := e.function.Rejecting; f != nil {
		f(e.activation, err)
	}
	if rejected := e.backend.fulfill(e, protocol.Rejected, encodeError(recorded(err))); rejected != nil {
		return rejected
	}
	e.outcome = Outcome{State: Failed, Attempt: e.journal.attempt(), Err: err}
	return nil
}

// delay is the delay after the k-th attempt.
func (r Retry) delay(k int, chance func() float64) time.Duration {
	return backoff.Delay(r.Delay, r.MaxDelay, r.Jitter, k, chance)
}
