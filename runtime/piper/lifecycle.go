package piper

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/internal/patient"
)

// closeGrace is how long a restart waits for Close of the previous instance, which may
// hold a file or a port that the next one needs. If Close takes longer, both run at the
// same time.
const closeGrace = 100 * time.Millisecond

// lifecycle starts and closes the instances of a pool.
type lifecycle struct {
	pool       *Pool
	err        error     // of Run; guarded by Pool.mu, like the lists
	failures   errorList // failures of instances that are not restarted
	lateErrors errorList // failures of handlers that returned after Run had ended
}

// init calls Init of all instances. If ctx ends, it waits for the drain timeout
// and then gives up, because an Init may wait for something that never happens.
func (l *lifecycle) init(ctx context.Context) error {
	p := l.pool
	inited, late := make(chan struct{}), make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		if patient.Wait(p.options.drainTimeout, inited) {
			return
		}
		p.cancelHandlers()
		if !patient.Wait(abandonAfter, inited) { // for an Init that returns when its context ends
			close(late)
		}
	})
	defer unwatch()
	c := &executor{late: late}
	defer c.end()
	err := l.initAll(c)
	close(inited)
	if err != nil && ctx.Err() != nil && p.handlerCtx.Err() != nil {
		return fmt.Errorf("%w after %v: %w", ErrDrainTimeout, p.options.drainTimeout, err)
	}
	return err
}

// initAll calls Init in the order of the topology file.
func (l *lifecycle) initAll(c *executor) error {
	p := l.pool
	for _, proc := range p.processors {
		timeout := time.Duration(0)
		if proc.Watch != nil {
			timeout = proc.Watch.Startup
		}
		for _, u := range proc.units {
			if u.remote {
				continue
			}
			if p.calls.wait(p.handlerCtx.Done()); p.handlerCtx.Err() != nil {
				return errNotInitialized
			}
			err := l.initOne(c, u, timeout)
			if u.started = err == nil; u.started {
				continue
			}
			w := u.watch()
			if w == nil || p.spec.Supervisor == nil || p.handlerCtx.Err() != nil {
				return err
			}
			if w.reportEnd(ChildNotStarted, err); p.ended.Load() {
				return err
			}
		}
	}
	return nil
}

// initOne calls Init of one instance. An Init that hangs is abandoned, and its context
// ends.
func (l *lifecycle) initOne(c *executor, u *Unit, timeout time.Duration) (err error) {
	p := l.pool
	if timeout == 0 && !u.cell.hasInit() { // there may be 100,000 of them
		return nil
	}
	ctx := holding(u, p.handlerCtx)
	if p.stepper != nil {
		l.guard(&err, u, "Init", func() error { return u.cell.Init(ctx) })
		return err
	}
	var starting startAttempt
	if timeout > 0 {
		ctx = starting.begin(ctx)
	}
	var failed error // written by Init, which may return after initOne
	init := func() { l.guard(&failed, u, "Init", func() error { return u.cell.Init(ctx) }) }
	if c.run(timeout, init, p.supervision.abandonedReturned) {
		if timeout > 0 {
			u.watch().cancelInit = starting.cancel
		}
		return failed
	}
	if w := u.watch(); w != nil {
		w.holder.drop() // before the context ends, because Init may take a hold then
	}
	starting.cancelInit()
	e := p.handlerError(u, nil, "Init", errStartup)
	if c.isLate() {
		e.Err = errInitHangs
	}
	p.logbook.record(e)
	if u.proc.faults != nil {
		u.proc.faults.healthCheckKills.Add(1)
	}
	p.supervision.countAbandoned(u)
	return e
}

// guard calls a method outside of a turn. It stores its error at err. A panic or
// runtime.Goexit becomes an error.
func (l *lifecycle) guard(err *error, u *Unit, method string, call func() error) {
	p := l.pool
	returned := false
	defer func() {
		if returned {
			return
		}
		cause := errEnded
		if panicked := recover(); panicked != nil {
			cause = chain.OfPanic(panicked)
		}
		e := p.handlerError(u, nil, method, cause)
		e.Stack = debug.Stack()
		p.logbook.record(e)
		*err = e
	}()
	failed := call()
	returned = true
	if failed != nil {
		e := p.handlerError(u, nil, method, failed)
		p.logbook.record(e)
		*err = e
	}
}

// closeTimeout is how long Close of an instance may take. If there is no drain timeout,
// it is as long as Run waits for handlers after an error.
func (l *lifecycle) closeTimeout(u *Unit) time.Duration {
	if w := u.proc.Watch; w != nil && w.Timeout > 0 {
		return w.Timeout
	}
	return max(l.pool.options.drainTimeout, abandonAfter)
}

// closeInBackground calls Close of an instance that has ended, without delaying workers
// or the restart. The returned channel is closed when Close has returned; it is nil if
// there is nothing to wait for. A Close that hangs is abandoned, and Run does not wait
// for it.
func (l *lifecycle) closeInBackground(u *Unit) <-chan struct{} {
	p := l.pool
	closer := u.cell.Closer()
	if closer == nil {
		return nil
	}
	failed := func(err error) {
		if err != nil {
			p.logbook.failure(u, logClose, slog.LevelWarn, "topogen: Close failed for an instance that has ended", err)
		}
	}
	if p.stepper != nil {
		var err error
		l.guard(&err, u, "Close", closer)
		failed(err)
		return nil
	}
	p.running.Add(1)
	return l.closeWithTimeout(u, closer, l.closeTimeout(u), func(err error) {
		failed(err)
		p.running.Done()
	})
}

// closeWithTimeout calls closer, the Close of u, in another goroutine. It calls done
// once: with the error of Close, or with ErrCloseHangs after the timeout. The returned
// channel is closed when Close has returned.
func (l *lifecycle) closeWithTimeout(u *Unit, closer func() error, timeout time.Duration, done func(error)) <-chan struct{} {
	closed := make(chan struct{})
	var over atomic.Bool // done was called or will be called
	in := u.Isolation().current()
	timer := patient.AfterFunc(timeout, func() {
		if over.CompareAndSwap(false, true) {
			done(l.closeHangs(u, in, timeout))
		}
	})
	go func() {
		var err error
		defer func() {
			close(closed)
			timer.Stop()
			if over.CompareAndSwap(false, true) {
				done(err)
			} else {
				l.pool.supervision.abandonedReturned()
			}
		}()
		l.guard(&err, u, "Close", closer)
	}()
	return closed
}

// closeHangs returns the error for a Close that hangs. It abandons the goroutine of
// Close, or kills the process of the instance.
func (l *lifecycle) closeHangs(u *Unit, in Process, timeout time.Duration) error {
	p := l.pool
	e := p.handlerError(u, nil, "Close", fmt.Errorf("%w: %v", ErrCloseHangs, timeout))
	p.logbook.record(e)
	if in != nil {
		in.Kill(ErrCloseHangs)            // counts neither as an abandoned goroutine nor as a kill of the health check
		p.supervision.abandonedNow.Add(1) // until Close returns, which is soon
		return e
	}
	p.supervision.countAbandoned(u)
	return e
}

// closeAll calls Close of all instances in reverse order, except where a call still
// runs. All calls together may take the drain timeout. After that, the remaining
// instances are closed in parallel.
func (l *lifecycle) closeAll(err error) error {
	p := l.pool
	for _, w := range p.workers {
		p.monitor.takeWorker(w, w.state.Load())
	}
	c := &closing{pool: p, limit: patient.AfterFunc(max(p.options.drainTimeout, abandonAfter), func() {})}
	for _, proc := range slices.Backward(p.processors) {
		for _, u := range slices.Backward(proc.units) {
			if w := u.watch(); u.worker.Load().state.Load()&1 == 1 || w != nil && w.hungCall != nil {
				if in := u.Isolation().current(); in != nil {
					in.Kill(nil)
				}
				continue
			} else if w != nil {
				w.adoptLate()
			}
			if u.started {
				c.close(u)
			}
		}
	}
	err = c.wait(err)
	p.supervision.endSpares()
	return err
}

// closing closes all instances at the end of Run.
type closing struct {
	pool   *Pool
	caller executor
	limit  *patient.Timer // after it the remaining instances are closed in parallel
	mu     sync.Mutex
	errs   errorList
	rest   sync.WaitGroup // instances that are closed in parallel
}

func (c *closing) failed(err error) {
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.errs.add(err)
	}
}

func (c *closing) close(u *Unit) {
	p := c.pool
	closer := u.cell.Closer()
	if closer == nil {
		return
	}
	var err error
	if p.stepper != nil {
		c.caller.run(0, func() { p.lifecycle.guard(&err, u, "Close", closer) }, nil)
		c.failed(err)
		return
	}
	left := c.limit.Left()
	if left <= 0 {
		c.rest.Add(1)
		p.lifecycle.closeWithTimeout(u, closer, abandonAfter, func(err error) {
			c.failed(err)
			c.rest.Done()
		})
		return
	}
	timeout := min(p.lifecycle.closeTimeout(u), left+abandonAfter)
	if !c.caller.run(timeout, func() { p.lifecycle.guard(&err, u, "Close", closer) }, p.supervision.abandonedReturned) {
		c.failed(p.lifecycle.closeHangs(u, u.Isolation().current(), timeout))
		return
	}
	c.failed(err)
}

// wait waits for the instances that are closed in parallel, at most abandonAfter for
// each. It returns err joined with the errors of all Close calls.
func (c *closing) wait(err error) error {
	c.rest.Wait()
	c.limit.Stop()
	c.caller.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.errs.join(err, "errors of Close")
}
