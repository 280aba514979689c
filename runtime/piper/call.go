package piper

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// Request is a message of an external edge with a reply, together with the call that
// waits for the reply.
type Request[M, R any] struct {
	Message M
	call    *pendingReply[R]
}

// pendingReply waits for the reply to one request. The channel has room for one outcome, so the
// receiver never blocks if the caller has given up. The garbage collector frees the pendingReply
// of such a caller. A pendingReply that got its reply is reused.
type pendingReply[R any] struct {
	answer chan outcome[R]
	remote func(R, error) // sends the outcome to the caller on another node; answer is nil
	gaveUp atomic.Bool    // no goroutine reads answer any more

	gathering *Gathering[R] // gets the outcome as its part with this number; answer and remote are nil
	part      int
}

// end completes the call.
func (c *pendingReply[R]) end(o outcome[R]) {
	switch {
	case c.remote != nil:
		c.remote(o.answer, o.err)
	case c.gathering != nil:
		c.gathering.complete(c.part, o)
	default:
		c.answer <- o
	}
}

func (c *pendingReply[R]) replied() bool { return len(c.answer) > 0 }

// outcome is a reply or an error.
type outcome[R any] struct {
	answer R
	err    error
}

// Calls makes requests and waits for their replies. The zero value is ready to use.
type Calls[M, R any] struct {
	free sync.Pool
}

// Request wraps m with a call, for the queue.
func (c *Calls[M, R]) Request(m M) Request[M, R] {
	k, _ := c.free.Get().(*pendingReply[R])
	if k == nil {
		k = &pendingReply[R]{answer: make(chan outcome[R], 1)}
	}
	return Request[M, R]{m, k}
}

// NoReply wraps a message whose reply is not needed.
func NoReply[M, R any](m M) Request[M, R] { return Request[M, R]{Message: m} }

// Commit publishes the request and unlocks its gate. ctx is the context of the send.
func (r *Request[M, R]) Commit(ctx context.Context, x *External, t Target) {
	if r.call == nil {
		x.Commit(t)
		return
	}
	x.commitAsk(ctx, r.call, t)
}

// Reply sends the reply to the caller. It never blocks.
func (r *Request[M, R]) Reply(answer R) {
	if r.call != nil {
		r.call.end(outcome[R]{answer: answer})
		r.call = nil
	}
}

// Evicted makes a Request a queue.Evictee. The caller gets topo.ErrFull.
func (r *Request[M, R]) Evicted() {
	if r.call != nil {
		r.call.end(outcome[R]{err: topo.ErrFull})
		r.call = nil
	}
}

// fail makes the call of a request return an error, because no handler could handle the
// message and there are no further attempts.
func (r *Request[M, R]) fail(why error) {
	if r.call == nil {
		return
	}
	why = forCaller(why)
	if r.call.remote == nil { // the caller's node adds ErrFailed
		why = fmt.Errorf("%w: %w", topo.ErrFailed, why)
	}
	r.call.end(outcome[R]{err: why})
	r.call = nil
}

// Envelope implements Enveloped.
func (r *Request[M, R]) Envelope() Envelope { return Envelope{r.Message, r.fail} }

// RequestWith wraps m with a call whose outcome is passed to end.
func RequestWith[M, R any](m M, end func(reply R, err error)) Request[M, R] {
	return Request[M, R]{m, &pendingReply[R]{remote: end}}
}

// Waiter is what waits for the reply to a request that leaves the node.
type Waiter[R any] struct{ call *pendingReply[R] }

// TakeWaiter removes the Waiter from the request. It returns false if no reply is needed.
func (r *Request[M, R]) TakeWaiter() (w Waiter[R], ok bool) {
	w.call, r.call = r.call, nil
	return w, w.call != nil
}

// End passes the reply, or an error, to the caller.
func (w Waiter[R]) End(reply R, err error) { w.call.end(outcome[R]{reply, err}) }

// Gathering is the call that several instances answer, of which the request is a part. It is
// nil if one instance answers.
func (w Waiter[R]) Gathering() (g *Gathering[R], part int) { return w.call.gathering, w.call.part }

// Waits reports whether the caller has not stopped waiting.
func (w Waiter[R]) Waits() bool {
	if g := w.call.gathering; g != nil {
		return g.Waits()
	}
	return !w.call.gaveUp.Load()
}

// Wait waits for the reply until ctx ends, the timeout of the edge has passed (0 means
// none), or the topology has ended.
func (c *Calls[M, R]) Wait(ctx context.Context, x *External, r Request[M, R], timeout time.Duration) (answer R, err error) {
	got, err := c.wait(ctx, x, r, timeout)
	if err != nil {
		return answer, err
	}
	c.free.Put(r.call)
	return got.answer, got.err
}

func (c *Calls[M, R]) wait(ctx context.Context, x *External, r Request[M, R], timeout time.Duration) (got outcome[R], err error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	if s := x.pool.stepper; s != nil {
		s.stepUntil(func() bool { return len(r.call.answer) > 0 })
		if len(r.call.answer) == 0 {
			r.call.gaveUp.Store(true)
			return got, topo.ErrStopping
		}
	}
	select {
	case got = <-r.call.answer:
		return got, nil
	default:
	}
	select {
	case got = <-r.call.answer:
		return got, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-x.ended:
		err = topo.ErrStopping
	}
	select { // a reply that arrived at the same time wins
	case got = <-r.call.answer:
		return got, nil
	default:
		r.call.gaveUp.Store(true)
		return got, err
	}
}
