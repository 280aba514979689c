package durable

import (
	"context"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A Call is a call of a durable function, which may be written in another language and run
// in another program.
type Call struct {
	// ID is the id of the execution: any text of at most 2,000 bytes without U+0000. A second
	// call with the same id returns the promise of the first one, and ErrTaken if it is a call
	// of another function. The promise has the same id, unless the id contains ":#": see
	// PromiseID. Within a durable function it is usually "": the id is then the id of
	// the execution with the number of the record.
	ID string
	// Func is the name of the function.
	Func string
	// Target is the address of the workers, for example poll://any@payments. "" means the
	// group of the worker.
	Target string
	// Arg is the argument. It is encoded as JSON.
	Arg any
	// Timeout is the time after which the promise is rejected. 0 means 24 hours. A call
	// in a durable function ends with its caller at the latest.
	Timeout time.Duration
	// Delay is the time until the function is started.
	Delay time.Duration
	// Tags are more tags of the promise.
	Tags map[string]string
	// External means that no function is called: another program settles the promise, for
	// example when a person has approved. Func is then a name for the record only.
	External bool
}

// timeoutDefault is the timeout of a call that names none, as in the SDKs.
const timeoutDefault = 24 * time.Hour

// Start starts a call, and returns when its promise is on disk. With the Context of a
// durable function the call is a child: it is recorded, and on replay Start returns the
// handle of the same promise. Children run at the same time as their caller; the handles
// can be awaited one by one, or with All and Any. The worker is then that of the
// execution, and w may be nil.
func Start[R any](ctx context.Context, w *Worker, call Call) (Handle[R], error) {
	h, err := start(ctx, w, call)
	return Handle[R]{h}, err
}

// Invoke starts a call and waits for its result.
func Invoke[R any](ctx context.Context, w *Worker, call Call) (R, error) {
	h, err := start(ctx, w, call)
	if err != nil {
		var result R
		return result, err
	}
	return Handle[R]{h}.Wait(ctx)
}

// StartAll is Start for several calls. In a durable function their promises go to the
// backend together, so that a hundred children cost as many writes as one.
func StartAll[R any](ctx context.Context, w *Worker, calls ...Call) ([]Handle[R], error) {
	promises, w, err := startAll(ctx, w, calls)
	handles := make([]Handle[R], len(promises))
	for i, p := range promises {
		handles[i] = Handle[R]{handle{worker: w, promise: p}}
	}
	return handles, err
}

func startAll(ctx context.Context, w *Worker, calls []Call) ([]*protocol.Promise, *Worker, error) {
	if e := executionOf(ctx); e != nil {
		promises, err := e.startAll(calls)
		return promises, e.worker, err
	}
	var promises []*protocol.Promise
	for _, call := range calls {
		h, err := start(ctx, w, call)
		if err != nil {
			return promises, w, err
		}
		promises = append(promises, h.promise)
	}
	return promises, w, nil
}

// defaults sets what a call does not say.
func (w *Worker) defaults(call Call) Call {
	if call.Timeout <= 0 {
		call.Timeout = timeoutDefault
	}
	if call.Target == "" {
		call.Target = w.target
	}
	return call
}

func start(ctx context.Context, w *Worker, call Call) (handle, error) {
	if e := executionOf(ctx); e != nil {
		p, err := e.start(e.worker.defaults(call))
		return handle{worker: e.worker, promise: p}, err
	}
	p, err := w.start(ctx, w.defaults(call))
	return handle{worker: w, promise: p}, err
}
