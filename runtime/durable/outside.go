package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

const (
	// subscribeAgain is how often a waiting caller registers again, in case that the
	// message about the promise was lost.
	subscribeAgain = time.Minute
	// pollPeriod is how often a caller asks that cannot be told: the worker is not
	// connected, or the promise cannot be observed.
	pollPeriod = time.Second
	// haltedAfter is how long a caller waits before it asks whether the execution is halted.
	// Most executions have ended by then, so that the question costs nothing.
	haltedAfter = time.Second
)

// callOf is the operation that creates the promise of a call.
func callOf(call Call, id string, now time.Time) (protocol.PromiseCreate, error) {
	create := protocol.PromiseCreate{ID: id, TimeoutAt: now.Add(call.Timeout).UnixMilli(), Tags: make(map[string]string, len(call.Tags)+8)}
	for key, value := range call.Tags {
		create.Tags[key] = value
	}
	create.Tags[protocol.TagScope] = "global"
	create.Tags[protocol.TagBranch] = id
	create.Tags[protocol.TagParent] = id
	create.Tags[protocol.TagOrigin] = id
	delete(create.Tags, tagID)
	if call.ID != "" && call.ID != id {
		create.Tags[tagID] = call.ID
	}
	if !call.External {
		create.Tags[protocol.TagTarget] = call.Target
	}
	if call.Delay > 0 {
		create.Tags[protocol.TagDelay] = fmt.Sprint(now.Add(call.Delay).UnixMilli())
	}
	var err error
	if create.Param, err = encodeCall(call.Func, call.Arg); err != nil {
		err = fmt.Errorf("durable: the argument of %s cannot be encoded as JSON: %w", call.Func, err)
	}
	return create, err
}

// start creates the promise of a call that is not made by a durable function.
func (w *Worker) start(ctx context.Context, call Call) (*protocol.Promise, error) {
	if call.ID == "" {
		call.ID = fmt.Sprintf("%s:%s:%016x%016x", w.config.Group, call.Func, w.config.Random(), w.config.Random())
	}
	id, err := promiseID(call.ID)
	if err != nil {
		return nil, err
	}
	create, err := callOf(call, id, w.now())
	if err != nil {
		return nil, err
	}
	get := func(id string) (*protocol.Promise, error) { return w.promise(ctx, id) }
	return claim(call, create, get, func(op protocol.PromiseCreate) (*protocol.Promise, error) {
		result, err := w.do(ctx, op)
		if err == nil && (result.Status != protocol.OK || result.Promise == nil) {
			err = refused(op, result)
		}
		return result.Promise, err
	})
}

// promise reads a promise.
func (w *Worker) promise(ctx context.Context, id string) (*protocol.Promise, error) {
	get := protocol.PromiseGet{ID: id}
	result, err := w.do(ctx, get)
	switch {
	case err != nil:
		return nil, err
	case result.Status == protocol.NotFound:
		return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
	case result.Status != protocol.OK || result.Promise == nil:
		return nil, refused(get, result)
	}
	return result.Promise, nil
}

// wait waits until a promise is settled, for a caller that is not a durable function.
func (w *Worker) wait(ctx context.Context, id string) (*protocol.Promise, error) {
	c := make(chan *protocol.Promise, 1)
	w.mu.Lock()
	w.waiters[id] = append(w.waiters[id], c)
	w.mu.Unlock()
	defer w.forget(id, c)
	for first := true; ; first = false {
		p, again, err := w.subscribe(ctx, id)
		if err != nil || p.State != protocol.Pending {
			return p, err
		}
		if err := w.whyAbandoned(id); err != nil {
			return nil, err
		}
		if w.config.Manual {
			if !w.awaited(ctx, id) {
				return nil, cmp.Or(w.halted(ctx, id), errNothingLeft)
			}
			continue
		}
		if first {
			again = min(again, haltedAfter)
		} else if err := w.halted(ctx, id); err != nil {
			return nil, err
		}
		timer := time.NewTimer(again)
		select {
		case p := <-c:
			timer.Stop()
			if p != nil {
				return p, nil
			}
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-w.ctx.Done():
			timer.Stop()
			return nil, ErrStopping
		}
	}
}

// halted returns an error if the task of a promise is halted. Other promises have no task.
func (w *Worker) halted(ctx context.Context, id string) error {
	result, err := w.do(ctx, protocol.TaskGet{ID: id})
	if err != nil || result.Task == nil || result.Task.State != protocol.TaskHalted {
		return err
	}
	return fmt.Errorf("%w: %s; topoctl durable tasks continue with this id lets it continue", ErrHalted, id)
}

// errNothingLeft is the error of Wait if the scheduler of a manual worker cannot settle the
// promise.
var errNothingLeft = errors.New("durable: Wait would block a manual worker: the promise is pending, and nothing is left to do")

// awaited lets the scheduler of a manual worker work until a promise is settled.
func (w *Worker) awaited(ctx context.Context, id string) bool {
	return w.config.Await != nil && w.config.Await(func() bool {
		p, err := w.promise(ctx, id)
		return err != nil || p.State != protocol.Pending || w.whyAbandoned(id) != nil
	})
}

// subscribe registers for the message about a promise, and returns the promise and the
// time after which to register again.
func (w *Worker) subscribe(ctx context.Context, id string) (*protocol.Promise, time.Duration, error) {
	w.mu.Lock()
	connected := w.connected
	w.mu.Unlock()
	if connected {
		result, err := w.do(ctx, protocol.RegisterListener{Awaited: id, Address: w.address})
		if err != nil {
			return nil, 0, err
		}
		if result.Status == protocol.OK && result.Promise != nil {
			return result.Promise, subscribeAgain, nil
		}
	}
	p, err := w.promise(ctx, id)
	return p, pollPeriod, err
}

// wake lets the callers that wait for a promise ask for it again.
func (w *Worker) wake(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.waiters[id] {
		select {
		case c <- nil:
		default: // it will look anyway
		}
	}
}

// settled passes a settled promise to the callers that wait for it.
func (w *Worker) settled(p *protocol.Promise) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.waiters[p.ID] {
		select {
		case c <- p:
		default: // it has one already
		}
	}
}

func (w *Worker) forget(id string, c chan *protocol.Promise) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.DeleteFunc(w.waiters[id], func(other chan *protocol.Promise) bool { return other == c })
	if len(left) == 0 {
		delete(w.waiters, id)
	} else {
		w.waiters[id] = left
	}
}
