package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"time"
)

// A StepOption is an option of Step: a Retry.
type StepOption interface{ step(*stepOptions) }

type stepOptions struct{ retry Retry }

func (r Retry) step(o *stepOptions) { o.retry = r }

// Step runs a function with side effects once and records its result. When the execution
// is repeated after a crash or a suspension, Step returns the record and does not call the
// function.
//
// "Once" has a limit: if the process dies while the function runs, or before the result is
// on disk, then the function runs again. So a step runs at least once, and its effect
// should be idempotent: pass Context.ID and the name of the step as its key where a service
// takes one.
//
// The result is encoded as JSON, and Step returns the decoded value, also the first time.
// An error is recorded and returned as an *Error, also the first time, so that a function
// decides the same way on each replay. A panic is not recorded: the attempt at the
// execution fails.
//
// The name is recorded with the result. If the recorded step at this place has another
// name, the task is halted with ErrDiverged. Names that begin with "durable." are reserved.
func Step[T any](ctx Context, name string, run func(context.Context) (T, error), options ...StepOption) (T, error) {
	var result T
	err := ctx.execution().step(name, options, func(c context.Context) (any, error) { return run(c) }, &result)
	return result, err
}

// Sleep suspends the execution for a duration. The deadline is on disk: the execution
// occupies no memory while it sleeps, and a process that is started in the meantime
// continues it. The error is not nil only if the context is misused or has ended.
func Sleep(ctx Context, d time.Duration) error { return ctx.execution().sleep(d) }

// After starts a timer. Its handle can be given to Any together with other handles, for
// example to wait for a call for at most an hour.
func After(ctx Context, d time.Duration) (Handle[struct{}], error) {
	e := ctx.execution()
	p, err := e.timer(d)
	if err != nil {
		return Handle[struct{}]{}, err
	}
	return Handle[struct{}]{handle{worker: e.worker, promise: p}}, nil
}

// Now returns the time, in milliseconds and in UTC. It is recorded, so that an execution
// sees the same time on each replay. It panics if the context is misused or has ended.
func Now(ctx Context) time.Time {
	e := ctx.execution()
	var ms int64
	err := e.internalStep(nameNow, func(context.Context) (any, error) { return e.worker.now().UnixMilli(), nil }, &ms)
	if err != nil {
		panic(err)
	}
	return time.UnixMilli(ms).UTC()
}

// Names of the records that are not steps of the user.
const (
	reserved    = "durable."
	nameNow     = "durable.Now"
	nameSleep   = "durable.Sleep"
	nameAny     = "durable.Any"
	nameVersion = "durable.Version " // and the name of the change
	nameCall    = "durable.Call "    // and the function
	nameStart   = "durable.Start "   // and the function: a call with an id of its own
	nameRetry   = "durable.Retry"
	nameAttempt = "durable.Attempt"
	nameCancel  = "durable.Cancel"
)

// unmarshalStep decodes the recorded result of a step. A nil result ignores it. A field that
// the result does not have is an error: its type has changed, and the field that replaces it
// would be empty. A type may write fields that it does not read, if it writes them again.
func unmarshalStep(data json.RawMessage, result any) error {
	if result == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	unknown := d.Decode(result)
	if unknown == nil {
		return nil
	}
	if err := json.Unmarshal(data, result); err != nil {
		return err
	}
	if again, err := json.Marshal(result); err == nil && bytes.Equal(again, data) {
		return nil
	}
	return unknown
}

// unmarshal decodes the result of a call. A nil result ignores it.
func unmarshal(data json.RawMessage, result any) error {
	if result == nil {
		return nil
	}
	return json.Unmarshal(data, result)
}
