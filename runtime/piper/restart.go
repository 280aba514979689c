package piper

import (
	"context"
	"errors"
	"time"

	"github.com/topogen/topogen/runtime/internal/hold"
	"github.com/topogen/topogen/runtime/internal/patient"
)

var (
	errNotRenewable = errors.New("pool: the instance cannot be constructed again")
	errStartup      = errors.New("pool: the constructor and Init take longer than the startup timeout")
	errStopped      = errors.New("pool: the instance was stopped for the restart of its group, and is not started again")
	errEnds         = errors.New("pool: the instance has ended and is not restarted")
)

// startInstance starts a new instance, on a goroutine of its own because a constructor
// may take long.
func (w *Worker) startInstance(v *watch) {
	u := v.unit
	p := w.pool
	v.phase = watchStarting
	v.awaitRestart()
	m := &startAttempt{holder: &holder{proc: u.proc}}
	v.starting = m
	if p.stepper != nil {
		m.adopt, m.err = p.supervision.reconstruct(hold.With(p.handlerCtx, m.holder), u)
		v.command(command{started: m})
		return
	}
	closed, ctx := v.closed, hold.With(p.handlerCtx, m.holder)
	limit := u.proc.Watch.Startup
	if limit > 0 {
		ctx = m.begin(ctx)
	}
	p.starters.Add(1)
	go func() {
		m.err = errEnded // remains if the constructor ends this goroutine
		defer func() {
			v.command(command{started: m})
			if m.uncounted.CompareAndSwap(false, true) {
				p.starters.Done()
			}
		}()
		if isOpen(closed) {
			grace := time.NewTimer(closeGrace)
			defer grace.Stop()
			select {
			case <-closed:
			case <-grace.C:
			}
		}
		if limit > 0 {
			defer patient.AfterFunc(limit, func() { v.command(command{late: m}) }).Stop()
		}
		m.adopt, m.err = p.supervision.reconstruct(ctx, u)
	}()
}

// isOpen reports whether a channel is neither nil nor closed.
func isOpen(c <-chan struct{}) bool {
	select {
	case <-c:
		return false
	default:
		return c != nil
	}
}

// startTimedOut abandons a start that takes too long, and reports that it has failed.
func (w *Worker) startTimedOut(v *watch, m *startAttempt) {
	if v.starting != m {
		return // it has just ended
	}
	m.timedOut, v.starting, v.phase, v.deferredStop = true, nil, watchDown, 0
	v.dropHolds(m.holder)
	m.cancelInit()
	p := w.pool
	v.unit.proc.faults.healthCheckKills.Add(1)
	p.supervision.countAbandoned(v.unit)
	if m.uncounted.CompareAndSwap(false, true) {
		p.starters.Done()
	}
	err := p.handlerError(v.unit, nil, "Init", errStartup)
	v.cause = err
	p.supervision.notStarted(v.unit, err)
	p.supervision.report(ChildEvent{Kind: ChildNotStarted, Child: v.child(), Err: err})
}

// instanceStarted handles the end of a start: the instance is ready, or the start
// failed.
func (w *Worker) instanceStarted(v *watch, m *startAttempt) {
	p, u := w.pool, v.unit
	if v.starting != m || m.err != nil {
		v.dropHolds(m.holder)
		m.cancelInit()
	}
	if v.starting != m {
		if m.timedOut {
			p.supervision.abandonedReturned()
		}
		if v.starting == nil {
			p.supervision.mu.Lock()
			v.isolation.endSpare()
			p.supervision.mu.Unlock()
		}
		return
	}
	v.starting = nil
	if m.err != nil {
		v.phase, v.cause, v.deferredStop = watchDown, m.err, 0
		p.supervision.notStarted(u, m.err)
		p.supervision.report(ChildEvent{Kind: ChildNotStarted, Child: v.child(), Err: m.err})
		return
	}
	v.adopt(m)
	v.isolation.killed.Store(false)
	v.failed.Store(false)
	v.goroutineLeft, v.phase, v.cause = false, watchRunning, nil
	v.isolation.scheduleHeld()
	p.events.postRestarted(u.proc)
	p.events.postClosed(u)
	p.supervision.observe(func(o FaultObserver) { o.Restarted(u.proc.Name, u.Index()) })
	if v.deferredStop != 0 {
		w.stopChild(v, v.deferredStop)
		return
	}
	v.beginSource()
	v.resume()
	p.supervision.report(ChildEvent{Kind: ChildStarted, Child: v.child()})
	v.endAwait()
	w.schedule(u)
}

// adopt replaces the previous instance with the instance that was started.
func (w *watch) adopt(m *startAttempt) {
	if w.cancelInit != nil {
		w.cancelInit(context.Canceled)
	}
	w.cancelInit = m.cancel
	w.renewHolder(m.holder)
	if w.goroutineLeft {
		w.renewPosition()
	}
	m.adopt()
	w.unit.started = true
	w.unit.proc.faults.restarts.Add(1)
}

// adoptLate adopts an instance whose start has succeeded after the end of its worker, so that
// Close of the instance is called.
func (w *watch) adoptLate() {
	w.unit.proc.pool.supervision.mu.Lock()
	commands := w.commands
	w.commands = nil
	w.unit.proc.pool.supervision.mu.Unlock()
	for _, o := range commands {
		if m := o.started; m != nil && m == w.starting && m.err == nil {
			w.adopt(m)
		}
	}
}

// stopChild ends a running instance, as the supervisor has decided.
func (w *Worker) stopChild(v *watch, number uint64) {
	switch {
	case v.phase == watchStarting, v.unit.out.served: // continues when the start, or Serve, has returned
		v.deferredStop = number
		return
	case v.phase == watchRunning:
		if v.endsOnItsOwn() {
			v.reportNotStopped(number)
			return
		}
		v.shutDown()
		v.cause = errStopped
	}
	closed, limit := v.closed, w.pool.lifecycle.closeTimeout(v.unit)
	if d := v.unit.proc.Watch.Shutdown; d > 0 {
		limit = d
	}
	w.pool.supervision.spawn(func() {
		if isOpen(closed) {
			late := make(chan struct{})
			defer patient.AfterFunc(limit, func() { close(late) }).Stop()
			select {
			case <-closed:
			case <-late:
			case <-w.pool.done:
			}
		}
		v.reportStopped(number)
	})
}
