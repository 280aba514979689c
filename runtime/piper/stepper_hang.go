package piper

import "slices"

// hang is the value that Hang panics with.
type hang struct{}

// Hang simulates a handler that hangs. It must be called in a handler: it leaves the
// handler at once, but the topology behaves as if the handler never returned. It is for
// tests of timeouts.
func (s *Stepper) Hang() { panic(hang{}) }

// handleCrash handles a handler that has not returned normally: Hang was called, or it
// panicked.
func (s *Stepper) handleCrash(r *runner, cause any) {
	v := (*watch)(nil)
	if r.inCall {
		v = r.unit.watch()
	}
	if _, ok := cause.(hang); !ok || v == nil || v.position == nil {
		r.handleCrash(cause)
		return
	}
	r.leave(r.unit)
	v.suspend()
	v.hungCall = &runner{w: r.w, unit: r.unit, link: r.link, calling: r.calling, closing: r.closing}
	r.closing, r.calling = false, ""
	if d := v.unit.proc.Watch.Timeout; d > 0 {
		s.setHangDeadline(v, s.now.Load()+int64(d), ErrHung)
	}
}

// setHangDeadline makes a call that hangs overdue at the given time, unless it is
// overdue earlier.
func (s *Stepper) setHangDeadline(v *watch, at int64, cause error) {
	if v.hangDeadline == 0 || at < v.hangDeadline {
		v.hangDeadline, v.hangCause = at, cause
		v.unit.proc.wakeAt(v.unit, at)
	}
}

// wakeAt sets the wakeup of u. If there is one, the new time is earlier.
func (s *Stepper) wakeAt(u *Unit, at int64) {
	h := s.worker.timers.heap
	i := slices.IndexFunc(h, func(e timerEntry) bool { return e.kind == timerWake && e.unit == u })
	if i < 0 {
		s.worker.timers.heap.push(timerEntry{at: at, unit: u, kind: timerWake})
		return
	}
	h[i].at = at
	h.up(i)
}

// endHang abandons a handler that hangs.
func (s *Stepper) endHang(v *watch) {
	r := v.hungCall
	v.hungCall, v.goroutineLeft = nil, true
	faults := v.unit.proc.faults
	faults.healthCheckKills.Add(1)
	faults.abandoned.Add(1)
	v.position.abandon(v.position.state.Load())
	v.afterHang(r, v.hangCause)
	if r.closing {
		v.unit.proc.group.endActivity(nil)
	}
}

// deferWhileHung returns the control bits that u must process now. If a call of u
// hangs, the bits are kept until the call is abandoned.
func (s *Stepper) deferWhileHung(u *Unit, bits uint32) uint32 {
	v := u.watch()
	if v == nil || v.hungCall == nil {
		return bits
	}
	if bits&controlTimer != 0 {
		u.proc.wakeups[u.index].fire(u)
	}
	v.deferredControl |= bits &^ controlTimer
	if v.hungCall != nil {
		return 0
	}
	bits, v.deferredControl = v.deferredControl, 0
	return bits
}

// watchProcesses starts the health check when there is the first process, which can hang in real
// time.
func (s *Stepper) watchProcesses() {
	p := s.pool
	if list := p.supervision.timedWatches(); len(list) > 0 && !s.watching {
		s.watching = true
		p.running.Add(1)
		go p.supervision.watchHealth(list)
	}
}

// commandEnds reports the ends of the processes that have ended between calls. A Stepper has no
// goroutine that waits for them, because its turns would then depend on how long a process
// takes to end.
func (s *Stepper) commandEnds() {
	s.processes = slices.DeleteFunc(s.processes, func(a attached) bool {
		if !a.isCurrent() {
			return true // a call has reported the end
		}
		select {
		case <-a.process.Done():
			a.isolation.watch.command(command{ended: a.process})
			return true
		default:
			return false
		}
	})
}
