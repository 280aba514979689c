package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// None is the result of a call without a result.
type None = struct{}

// A Handle is the handle of a promise whose result is an R. It outlives the process: Get
// makes a handle from an id. Handles may be copied and used from any goroutine.
type Handle[R any] struct{ handle }

// An Awaitable is a Handle with any type of result.
type Awaitable interface {
	// ID is the id of the promise.
	ID() string
	awaitable() handle
}

// A handle is a Handle without its type.
type handle struct {
	worker  *Worker           // nil: of Resolved, or of Get in a durable function
	promise *protocol.Promise // as it was when the handle was made
}

// ID is the id of the promise. Get and other programs find the result with it.
func (h handle) ID() string {
	if h.promise == nil { // the handle of a Start that failed
		return ""
	}
	return h.promise.ID
}

// Settled reports whether there was a result when the handle was made, for example because the
// id of the call was used before. It does not ask the server. A durable function must not
// call it, because the answer may differ on replay.
func (h handle) Settled() bool { return h.promise != nil && h.promise.State != protocol.Pending }

func (h handle) awaitable() handle { return h }

// Resolved returns a handle whose result is known, for tests.
func Resolved[R any](id string, result R) (Handle[R], error) {
	value, err := encode(result)
	return Handle[R]{handle{promise: &protocol.Promise{ID: id, State: protocol.Resolved, Value: value}}}, err
}

// Get returns the handle of a promise. It does not check that the promise exists. A durable
// function may pass nil for the worker: then the worker is that of the execution.
func Get[R any](w *Worker, id string) Handle[R] {
	return Handle[R]{handle{worker: w, promise: &protocol.Promise{ID: id, State: protocol.Pending}}}
}

// Find returns the handle of a promise. The error matches ErrNotFound if it does not exist.
func Find[R any](ctx context.Context, w *Worker, id string) (Handle[R], error) {
	p, err := w.promise(ctx, id)
	return Handle[R]{handle{worker: w, promise: p}}, err
}

// FindCall is Find for the promise of a call of a function in a group. The error matches ErrTaken
// if the promise was made for something else.
func FindCall[R any](ctx context.Context, w *Worker, id string, call Call) (Handle[R], error) {
	p, err := w.promise(ctx, id)
	if call = w.defaults(call); err == nil && !calls(p, call) {
		err = fmt.Errorf("%w: the promise %.200q was made by %s, not by a call of %q", ErrTaken, id, makerOf(p), call.Func)
	}
	if err != nil {
		return Handle[R]{}, err
	}
	return Handle[R]{handle{worker: w, promise: p}}, nil
}

// Wait waits for the result. The error is an *Error if the function failed, ErrCanceled,
// ErrTimedOut, or ErrHalted outside of durable functions.
//
// With the Context of a durable function, Wait suspends the execution until the promise is
// settled: the function does not occupy memory in the meantime, and is repeated from its
// records when it is resumed. Elsewhere, Wait blocks until ctx ends.
func (h Handle[R]) Wait(ctx context.Context) (R, error) {
	var result R
	p, err := h.wait(ctx)
	if err != nil {
		return result, err
	}
	return result, h.result(p, &result)
}

// Result returns the result, and whether there is one, without waiting. A durable function
// must not call it, because the answer may differ on replay.
func (h Handle[R]) Result(ctx context.Context) (result R, settled bool, err error) {
	if e := executionOf(ctx); e != nil {
		return result, false, e.misuse("Result is called in a durable function")
	}
	p, err := h.look(ctx)
	if err != nil || p.State == protocol.Pending {
		return result, false, err
	}
	return result, true, h.result(p, &result)
}

// Cancel cancels the promise: Wait returns ErrCanceled, and the context of a function that
// runs for it ends. It does nothing if the promise is settled. Calls that the function
// made are not canceled.
func (h handle) Cancel(ctx context.Context) error {
	e := executionOf(ctx)
	w := h.worker
	if w == nil && e != nil {
		w = e.worker
	}
	switch {
	case h.promise == nil:
		return errNotStarted
	case w == nil && !h.Settled():
		return errNoWorker
	case w == nil:
		return nil
	}
	settle := protocol.PromiseSettle{ID: h.ID(), State: protocol.RejectedCancel, Value: encodeError(&Error{Name: "Canceled", Message: "the promise was canceled"})}
	run := func(ctx context.Context) error {
		result, err := w.do(ctx, settle)
		if err == nil && result.Status != protocol.OK {
			err = refused(settle, result)
		}
		return err
	}
	if e == nil {
		return run(ctx)
	}
	return e.internalStep(nameCancel, func(ctx context.Context) (any, error) { return h.ID(), run(ctx) }, nil)
}

var (
	// errNotStarted is the error of a handle that comes from a Start that failed.
	errNotStarted = fmt.Errorf("%w: the handle is of a call that was not started", ErrNotFound)
	// errNoWorker is the error of a handle from Get without a worker.
	errNoWorker = errors.New("durable: the handle has no worker that could ask the server: pass one to Get")
)

// wait returns the settled promise.
func (h handle) wait(ctx context.Context) (*protocol.Promise, error) {
	e := executionOf(ctx)
	switch {
	case h.promise == nil:
		return nil, errNotStarted
	case e != nil:
		return e.await(ctx, h)
	case h.Settled():
		return h.promise, nil
	case h.worker == nil:
		return nil, errNoWorker
	}
	return h.worker.wait(ctx, h.ID())
}

// look returns the promise as it is now.
func (h handle) look(ctx context.Context) (*protocol.Promise, error) {
	switch {
	case h.promise == nil:
		return nil, errNotStarted
	case h.Settled():
		return h.promise, nil
	case h.worker == nil:
		return nil, errNoWorker
	}
	return h.worker.promise(ctx, h.ID())
}

// result decodes the outcome of a settled promise.
func (h handle) result(p *protocol.Promise, result any) error {
	data, err := outcomeOf(p)
	if err != nil || p.Tags[protocol.TagTimer] == "true" {
		return err
	}
	return unmarshal(data, result)
}

// All waits for all handles and returns their results in order. If some fail, All returns
// their errors joined, in the order of the handles.
func All[R any](ctx context.Context, handles ...Handle[R]) ([]R, error) {
	results := make([]R, len(handles))
	errs := make([]error, len(handles))
	for i, h := range handles {
		results[i], errs[i] = h.Wait(ctx)
		if ended(errs[i]) {
			return nil, errs[i]
		}
	}
	return results, errors.Join(errs...)
}

// Any waits until one of the handles is settled and returns its index. The index is
// recorded: on replay it is the same, even if other promises are settled by then.
func Any(ctx Context, handles ...Awaitable) (int, error) {
	hs := make([]handle, len(handles))
	for i, h := range handles {
		hs[i] = h.awaitable()
	}
	return ctx.execution().any(hs)
}

// ended reports whether an error says that the context cannot be used any longer.
func ended(err error) bool {
	return errors.Is(err, ErrMisuse) || errors.Is(err, ErrEnded)
}
