package piper

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/topo"
)

// Request is a message that may be answered: what an external edge with a reply
// carries.
type Request[M, R any] struct {
	Message M
	call    *call[R]
}

// call is one caller's wait for an answer. The channel holds one answer, so the
// receiver never waits for a caller that gave up; such a call is left to the
// collector, an answered one is used again.
type call[R any] struct {
	answer chan outcome[R]
}

// outcome is an answer, or why there will be none.
type outcome[R any] struct {
	answer R
	err    error
}

// Calls makes requests and waits for their answers. The zero value is ready.
type Calls[M, R any] struct {
	free sync.Pool
}

// Request wraps m for the queue.
func (c *Calls[M, R]) Request(m M) Request[M, R] {
	k, _ := c.free.Get().(*call[R])
	if k == nil {
		k = &call[R]{answer: make(chan outcome[R], 1)}
	}
	return Request[M, R]{m, k}
}

// NoReply wraps a message that nobody waits for an answer to.
func NoReply[M, R any](m M) Request[M, R] { return Request[M, R]{Message: m} }

// Reply answers the request; it never waits.
func (r *Request[M, R]) Reply(answer R) {
	if r.call != nil {
		r.call.answer <- outcome[R]{answer: answer}
		r.call = nil
	}
}

// Evicted makes a Request a queue.Evictee: nobody will answer it.
func (r *Request[M, R]) Evicted() {
	if r.call != nil {
		r.call.answer <- outcome[R]{err: topo.ErrFull}
		r.call = nil
	}
}

// fail answers a request whose handling has failed for good.
func (r *Request[M, R]) fail(why error) {
	if r.call != nil {
		r.call.answer <- outcome[R]{err: fmt.Errorf("%w: %w", topo.ErrFailed, why)}
		r.call = nil
	}
}

// letter is what is to be seen of it in a dead letter.
func (r *Request[M, R]) letter() any { return r.Message }

// Wait waits for the answer, until ctx ends, the timeout of the edge (0: none)
// has passed, or the topology has ended.
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
		if bug.On(bug.WrongCaller) {
			c.free.Put(r.call)
		}
	case <-x.ended:
		err = topo.ErrStopping
	}
	select { // an answer that came at the same time wins
	case got = <-r.call.answer:
		return got, nil
	default:
		return got, err
	}
}
