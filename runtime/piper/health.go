package piper

import (
	"fmt"
	"runtime"
	"time"

	"github.com/topogen/topogen/runtime/internal/patient"
)

// lateFraction limits the delay of a check to 1/lateFraction of the timeout. If the check runs
// later, the process was stopped or the host slept. The call that is checked did not run in that
// time either, so its timeout starts again.
const lateFraction = 4

// shutdownAgain is the interval at which an instance that must stop is checked again.
const shutdownAgain = 50 * time.Millisecond

// timedWatches lists the instances whose calls have a timeout.
func (s *supervision) timedWatches() (list []*watch) {
	for _, proc := range s.pool.processors {
		for i := range proc.watches {
			if proc.Watch.Timeout > 0 {
				list = append(list, proc.watches[i])
			}
		}
	}
	return list
}

// watchHealth checks the calls of instances with a timeout. It sleeps until the first
// call could be overdue, but not longer than a part of the shortest timeout, so that it
// notices a pause that ends before a call is overdue. A call that begins during the sleep
// cannot be overdue before the end of the sleep.
func (s *supervision) watchHealth(list []*watch) {
	p := s.pool
	defer p.lifecycle.goroutineEnded()
	defer p.lifecycle.failOnPanic("health check")
	timer := time.NewTimer(0)
	defer timer.Stop()
	step := int64(time.Hour)
	for _, w := range list {
		step = min(step, max(int64(w.unit.proc.Watch.Timeout)/patient.Checks, int64(time.Millisecond)))
	}
	for due := p.callClock(); ; {
		select {
		case <-p.done:
			return
		case <-timer.C:
		}
		now := p.callClock()
		late := now - due
		next := now + step
		for _, w := range list {
			timeout := int64(w.unit.proc.Watch.Timeout)
			position := w.sharedPosition.Load()
			if late > timeout/lateFraction {
				position.Alive() // neither this process nor the call ran for a while
			}
			state, at, overdue := position.overdue(now, timeout)
			if overdue {
				s.abandonCall(w, position, state, ErrHung)
				at = now + timeout
			}
			next = min(next, at)
		}
		due = next
		timer.Reset(time.Duration(next - p.callClock()))
	}
}

// abandonCall ends an instance whose call is overdue, for the given cause.
func (s *supervision) abandonCall(w *watch, position *Position, state uint64, cause error) {
	p := s.pool
	u := w.unit
	if in := w.isolation.current(); in != nil {
		w.isolation.kill(in, cause)
		return
	}
	if p.stepper != nil {
		return // a handler in the goroutine of a Stepper calls Hang
	}
	if !position.abandon(state) {
		return // the call has returned
	}
	u.proc.faults.healthCheckKills.Add(1)
	if s.countAbandoned(u) {
		s.replaceGoroutine(w, cause)
	} else {
		p.running.Done() // Run has ended, and does not wait for the goroutine
	}
}

// limitStop ends an instance that must stop together with a sibling and does not stop
// within the shutdown timeout of its group.
func (s *supervision) limitStop(w *watch, number uint64, after time.Duration) {
	patient.AfterFunc(after, func() {
		// Read these before the number of the stop: a later instance has another
		// process and another state.
		in, position := w.isolation.current(), w.sharedPosition.Load()
		state := position.state.Load()
		switch {
		case s.pool.ended.Load() || s.unansweredStop(w) != number:
			return
		case in != nil:
			w.isolation.kill(in, errShutdown)
		case state&whereMask == inHandler:
			s.abandonCall(w, position, state, errShutdown)
		}
		s.limitStop(w, number, shutdownAgain) // the instance was between two calls, and may hang in the next one
	})
}

// replaceGoroutine gives an instance whose goroutine hangs to a new goroutine. The old
// goroutine will not touch the instance or its worker again, so the caller owns both.
func (s *supervision) replaceGoroutine(w *watch, cause error) {
	p := s.pool
	u := w.unit
	old := s.takeHung(u)
	r := old.runner
	r.abandoned.Store(true)
	solo := p.monitor.newSolo(u, old.solo.hung)
	old.timers.disarm()
	solo.timers.heap, old.timers.heap = old.timers.heap, nil
	old.runq, u.queued = unitQueue{}, false
	solo.timers.arm()
	p.monitor.removeSolo(old)
	w.goroutineLeft = true
	w.afterHang(r, cause)
	old.solo.exited = true
	u.worker.Store(solo)
	old.solo.forwardNotes()
	if r.closing {
		u.proc.group.endActivity(nil)
	}
	p.running.Add(1)
	go p.run(solo)
	p.running.Done() // for the abandoned goroutine
}

// takeHung returns the worker outside the pool whose goroutine hangs in u.
func (s *supervision) takeHung(u *Unit) *Worker {
	p := s.pool
	for {
		w := u.worker.Load()
		if w.index < 0 {
			return w
		}
		if p.monitor.takeWorker(w, w.state.Load()) == nil {
			runtime.Gosched() // the monitor has just taken it
		}
	}
}

// countAbandoned counts an abandoned goroutine in a method of u. It reports whether Run
// goes on.
func (s *supervision) countAbandoned(u *Unit) bool {
	if u.proc.faults != nil {
		u.proc.faults.abandoned.Add(1)
	}
	if s.abandonedNow.Add(1) > abandonedMax {
		s.pool.lifecycle.end(fmt.Errorf("%w: %d", ErrAbandoned, abandonedMax))
		return false
	}
	return true
}

// abandonedReturned counts an abandoned goroutine that has returned.
func (s *supervision) abandonedReturned() { s.abandonedNow.Add(-1) }
