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
func (w *watch) startInstance() {
	u := w.unit
	p := u.proc.pool
	w.phase = watchStarting
	w.finishDelay.begin()
	m := &startAttempt{holder: &holder{proc: u.proc}}
	w.starting = m
	if p.stepper != nil {
		m.adopt, m.err = p.supervision.reconstruct(hold.With(fenced(u, p.handlerCtx), m.holder), u)
		w.command(command{started: m})
		return
	}
	closed, ctx := w.closed, hold.With(fenced(u, p.handlerCtx), m.holder)
	limit := u.proc.Watch.Startup
	if limit > 0 {
		ctx = m.begin(ctx)
	}
	p.starters.Add(1)
	go func() {
		m.err = errEnded // remains if the constructor ends this goroutine
		defer func() {
			w.command(command{started: m})
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
		p.calls.wait(ctx.Done())
		if limit > 0 {
			defer patient.AfterFunc(limit, func() { w.command(command{late: m}) }).Stop()
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
func (w *watch) startTimedOut(m *startAttempt) {
	if w.starting != m {
		return // it has just ended
	}
	m.timedOut, w.starting, w.phase, w.deferredStop = true, nil, watchDown, 0
	m.holder.drop()
	m.cancelInit()
	p := w.unit.proc.pool
	w.unit.proc.faults.healthCheckKills.Add(1)
	p.supervision.countAbandoned(w.unit)
	if m.uncounted.CompareAndSwap(false, true) {
		p.starters.Done()
	}
	err := p.handlerError(w.unit, nil, "Init", errStartup)
	w.cause = err
	p.supervision.notStarted(w.unit, err)
	p.supervision.report(ChildEvent{Kind: ChildNotStarted, Child: w.child(), Err: err})
}

// instanceStarted handles the end of a start: the instance is ready, or the start
// failed.
func (w *watch) instanceStarted(m *startAttempt) {
	p, u := w.unit.proc.pool, w.unit
	if w.starting != m || m.err != nil {
		m.holder.drop()
		m.cancelInit()
	}
	if w.starting != m {
		if m.timedOut {
			p.supervision.abandonedReturned()
		}
		if w.starting == nil {
			p.supervision.mu.Lock()
			w.isolation.endSpare()
			p.supervision.mu.Unlock()
		}
		return
	}
	w.starting = nil
	if m.err != nil {
		w.phase, w.cause, w.deferredStop = watchDown, m.err, 0
		p.supervision.notStarted(u, m.err)
		p.supervision.report(ChildEvent{Kind: ChildNotStarted, Child: w.child(), Err: m.err})
		return
	}
	w.adopt(m)
	w.isolation.killed.Store(false)
	w.failed.Store(false)
	w.goroutineLeft, w.phase, w.cause = false, watchRunning, nil
	w.isolation.scheduleHeld()
	p.events.postRestarted(u.proc)
	p.events.postClosed(u)
	p.supervision.observe(func(o FaultObserver) { o.Restarted(u.proc.Name, u.Index()) })
	if w.deferredStop != 0 {
		w.stopInstance(w.deferredStop)
		return
	}
	w.source.begin()
	w.resume()
	p.supervision.report(ChildEvent{Kind: ChildStarted, Child: w.child()})
	w.finishDelay.end()
	u.worker.Load().schedule(u)
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
