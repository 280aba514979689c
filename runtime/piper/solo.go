package piper

import (
	"runtime"
	"time"
)

const (
	slowTurnsMin  = 3                // long turns outside the pool before the pool logs a warning
	soloTurnsMin  = 64               // consecutive quick turns before an instance returns to the pool; doubles each time
	quickTurnsMin = 4 * soloTurnsMin // consecutive quick turns outside the pool before a processor stops being slow
	soloTurnMax   = time.Millisecond // maximum duration of a quick turn
	soloIdleMax   = time.Second      // after that an idle instance returns to the pool
	returnsExpMax = 16               // maximum number of doublings
)

// solo is the part of a worker outside the pool, which runs one instance. In a worker of the pool
// only the field worker is set.
type solo struct {
	worker    *Worker
	unit      *Unit    // the instance; nil after it has returned to the pool
	hung      bool     // the instance left the pool because a call took long
	slowTurns int      // number of long turns since then
	exited    bool     // the instance has returned to the pool, and the goroutine has ended
	suspect   *Unit    // unit at the start if hung was true then; the monitor reads it
	seen      sighting // belongs to the monitor
}

// countTurn counts the turns of an instance that left the pool because a call
// took long. It returns the instance to the pool when its turns are quick again.
func (s *solo) countTurn(u *Unit, took time.Duration) {
	if took > soloTurnMax {
		u.quickTurns, u.slow = 0, true
		u.proc.quickTurns.Store(0)
		if took > 2*monitorPeriod {
			if s.slowTurns++; s.slowTurns == slowTurnsMin {
				s.worker.pool.monitor.warn(u.proc)
			}
		}
		return
	}
	if u.proc.quickTurns.Add(1) == quickTurnsMin {
		u.proc.longCalls.Store(0)
	}
	if u.quickTurns++; u.quickTurns < soloTurnsMin<<u.soloReturns {
		return
	}
	u.slow, u.quickTurns, u.soloReturns = false, 0, min(u.soloReturns+1, returnsExpMax)
	if u.queued { // it is the only unit of this worker
		s.worker.runq.pop()
		u.queued = false
	}
	s.returnToPool(u)
}

// waitIdle waits for a note. If none comes for some time, it returns the instance to the pool, so that
// an idle instance keeps no goroutine.
func (s *solo) waitIdle() {
	timer := time.NewTimer(soloIdleMax)
	defer timer.Stop()
	select {
	case <-s.worker.wake:
		return
	case <-timer.C:
	}
	if !s.worker.parked.CompareAndSwap(true, false) {
		<-s.worker.wake // another goroutine has begun to wake the worker
		return
	}
	if u := s.unit; u.idle() && s.worker.inbox.empty() {
		s.returnToPool(u)
	}
}

// returnToPool returns an instance that is not queued. The caller must not touch it afterwards.
func (s *solo) returnToPool(u *Unit) {
	s.unit, s.hung = nil, false
	s.worker.handOver(u, s.worker.pool.workers[u.targetWorker.Load()])
	u.signal(controlIdle) // outside the pool no worker lists idle links
}

// exit ends the goroutine of a worker outside the pool whose instance has returned to
// the pool. Goroutines that still have the old worker of the instance may post further
// notes. The poster that would wake the worker forwards them.
func (s *solo) exit() {
	s.worker.pool.monitor.removeSolo(s.worker)
	s.exited = true
	s.forwardNotes()
	runtime.Goexit()
}

// forwardNotes forwards the notes of a worker whose goroutine has ended to the current
// workers of their instances. The caller has cleared parked.
func (s *solo) forwardNotes() {
	for more := true; more; {
		s.worker.readNotes()
		s.worker.parked.Store(true)
		more = !s.worker.inbox.empty() && s.worker.parked.CompareAndSwap(true, false)
	}
}
