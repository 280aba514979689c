package durable

import (
	"context"
	"time"
)

// A Context is the context of one activation of a durable function. It ends when the
// promise of the execution is canceled or its deadline passes, when the lease is lost, and
// when the function ends or is suspended. context.Cause says why.
//
// Only the goroutine that runs the function may pass a Context to the functions of this
// package. It may not do so inside a step.
type Context interface {
	context.Context
	// ID is the id of the execution: the id of its promise.
	ID() string
	// Attempt is 1 for the first attempt at the execution, and increases when Function.Retry
	// makes the function run again after an error.
	Attempt() int
	// Version returns the version of the code that this execution began with at this
	// place: max if the execution gets here for the first time, the recorded version if it
	// was here before, and min if it has records beyond this place from a time when the
	// function did not call Version. So a changed function can keep the old path for the
	// executions that have begun it:
	//
	//	if ctx.Version("ship by air", 1, 2) == 1 {
	//		… // the old path
	//	}
	//
	// An execution whose recorded version is not within min and max is halted with
	// ErrDiverged.
	Version(name string, min, max int) int

	execution() *execution
}

// A functionContext is the Context of an activation.
type functionContext struct {
	context.Context
	e *execution
}

func (c *functionContext) ID() string            { return c.e.promise.ID }
func (c *functionContext) Attempt() int          { return c.e.journal.attempt() }
func (c *functionContext) execution() *execution { return c.e }

// Deadline is the deadline of the promise.
func (c *functionContext) Deadline() (time.Time, bool) {
	return time.UnixMilli(c.e.promise.TimeoutAt), true
}

// Value finds the execution, so that a context that was derived from a Context is
// recognized.
func (c *functionContext) Value(key any) any {
	if key == (executionKey{}) {
		return c.e
	}
	return c.Context.Value(key)
}

// Within reports whether ctx is the Context of a durable function or was derived from it, as
// the context of a step is.
func Within(ctx context.Context) bool { return executionOf(ctx) != nil }

type executionKey struct{}

// executionOf is the execution from whose context ctx was derived, or nil.
func executionOf(ctx context.Context) *execution {
	e, _ := ctx.Value(executionKey{}).(*execution)
	return e
}

func (c *functionContext) Version(name string, least, most int) int {
	v, err := c.e.version(name, least, most)
	if err != nil {
		panic(err)
	}
	return v
}
