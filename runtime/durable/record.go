package durable

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// step runs a step, or decodes its recorded result.
func (e *execution) step(name string, options []StepOption, run func(context.Context) (any, error), result any) error {
	if len(name) == 0 || len(name) > nameMax || len(name) >= len(reserved) && name[:len(reserved)] == reserved {
		return e.misuse(fmt.Sprintf("%q is not a name for a step", name))
	}
	if len(options) == 0 {
		return e.record(name, Retry{}, run, result)
	}
	var o stepOptions // on the heap, because it is passed to an interface
	for _, option := range options {
		option.step(&o)
	}
	return e.record(name, o.retry, run, result)
}

// nameMax bounds the name of a step in bytes, because it is the value of a tag.
const nameMax = 1024

// internalStep records a value that is not a step of the user.
func (e *execution) internalStep(name string, run func(context.Context) (any, error), result any) error {
	return e.record(name, Retry{}, run, result)
}

func (e *execution) record(name string, retry Retry, run func(context.Context) (any, error), result any) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	p, s, err := e.next(name)
	if err == nil && (p == nil || p.State == protocol.Pending) {
		p, err = e.run(name, s, p, retry, run, result)
	}
	if err != nil {
		return e.ending(err)
	}
	data, err := appendOutcome(e.buffer, p)
	if err != nil {
		e.noteFailure(e.position)
		return err
	}
	e.buffer = data[:0] // unmarshalStep copies
	if err := unmarshalStep(data, result); err != nil {
		return e.ending(e.diverge(fmt.Sprintf("the result of %q, recorded at position %d, is not of the type that it has now: %v", name, e.position, err)))
	}
	return nil
}

// noteFailure remembers the first recorded failure, where the next attempt begins.
func (e *execution) noteFailure(position int) {
	if e.failed == 0 || position < e.failed {
		e.failed = position
	}
}

// ending ends the goroutine if err says that the activation must end.
func (e *execution) ending(err error) error {
	if err == errExit {
		e.exit()
	}
	return err
}

// run runs a step until it succeeds or has no attempts left, and records the result. p is
// its record if another worker has begun it. A result that its own type cannot read again is
// a failure: recorded, it would look like one of another program.
func (e *execution) run(name string, s slot, p *protocol.Promise, retry Retry, run func(context.Context) (any, error), result any) (*protocol.Promise, error) {
	attempt, err := e.resumeRetry(s)
	if err != nil {
		return nil, err
	}
	for ; ; attempt++ {
		if err := e.alive(); err != nil {
			return nil, err
		}
		value, err := e.backend.run(e, run)
		if err == nil {
			err = readable(value, result)
		}
		if err == nil {
			return e.settle(name, s, p, protocol.Resolved, value)
		}
		if err == errExit {
			return nil, err
		}
		if context.Cause(e.ctx) != nil {
			// The error is probably the end of the context, which another worker must not
			// see as the result.
			return nil, e.alive()
		}
		if attempt >= retry.Attempts || !retryable(err) {
			return e.settle(name, s, p, protocol.Rejected, encodeError(recorded(err)))
		}
		if err := e.delayRetry(s, attempt+1, retry.delay(attempt, e.worker.config.Chance)); err != nil {
			return nil, err
		}
	}
}

// runStep calls the function of a step and encodes its result.
func runStep(ctx context.Context, run func(context.Context) (any, error)) (protocol.Value, error) {
	result, err := run(ctx)
	if err != nil {
		return protocol.Value{}, err
	}
	value, err := encode(result)
	if err != nil {
		return value, Final(fmt.Errorf("the result of the step cannot be encoded as JSON: %w", err))
	}
	return value, nil
}

// readable reports an error if a value cannot be decoded as a result of the type to which
// result points.
func readable(value protocol.Value, result any) error {
	if result == nil {
		return nil
	}
	data, err := decode(value)
	if err == nil {
		err = unmarshalStep(data, reflect.New(reflect.TypeOf(result).Elem()).Interface())
	}
	if err != nil {
		return Final(fmt.Errorf("the result of the step cannot be read again from JSON: %w", err))
	}
	return nil
}

// settle records the result of a step. Creating and settling its promise go to the backend
// together, so that one write covers both. Nothing is written before the function has run:
// a promise that was created before would not prevent that the step in flight runs again,
// and would cost a second write.
func (e *execution) settle(name string, s slot, p *protocol.Promise, state protocol.PromiseState, value protocol.Value) (*protocol.Promise, error) {
	id := e.journal.id(s)
	settle := protocol.PromiseSettle{ID: id, State: state, Value: value}
	if p != nil {
		settle.ID = p.ID // an earlier version may have begun it
		settled, err := e.backend.fence(e, settle)
		return last(settled), err
	}
	create := protocol.PromiseCreate{ID: id, TimeoutAt: e.promise.TimeoutAt, Tags: e.tags(name, e.promise.ID, "local")}
	recorded, err := e.backend.fence(e, create, settle)
	if err != nil {
		return nil, err
	}
	if err := e.same(recorded[0], name); err != nil {
		return nil, err
	}
	return recorded[1], nil
}

func last(promises []*protocol.Promise) *protocol.Promise {
	if len(promises) == 0 {
		return nil
	}
	return promises[len(promises)-1]
}

// tags are the tags of a record.
func (e *execution) tags(name, branch, scope string) map[string]string {
	return map[string]string{
		tagStep:            name,
		protocol.TagScope:  scope,
		protocol.TagBranch: branch,
		protocol.TagParent: e.promise.ID,
		protocol.TagOrigin: e.origin,
	}
}

// resumeRetry returns the next attempt at a step, whose delay was on disk.
func (e *execution) resumeRetry(s slot) (int, error) {
	timer, ok := e.journal.retries[s]
	if !ok {
		return 1, nil
	}
	if timer.promise.State == protocol.Pending {
		if err := e.backend.suspend(e, timer.promise.ID); err != nil {
			return 0, err
		}
	}
	return int(timer.attempt), nil
}

// delayRetry waits for the delay before an attempt at a step.
func (e *execution) delayRetry(s slot, attempt int, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	if delay <= e.worker.inMemoryDelayMax() {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-e.ctx.Done():
		}
		return nil // the caller checks the context
	}
	_, err := e.backend.suspendUntil(e, e.timerOf(e.journal.retryID(s, attempt), nameRetry, delay))
	return err
}
