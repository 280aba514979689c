package piper

import (
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

const (
	monitorPeriod  = 5 * time.Millisecond // a handler that runs long is found after two to three periods
	monitorIdleMax = 20                   // periods without work after which the monitor sleeps
	looksMin       = 3                    // further periods in one call before the pool logs a warning
	slowTurnsMin   = 3                    // long turns outside the pool before the pool logs a warning
	hungMax        = 2                    // hung instances of a processor before all its instances leave the pool
	soloTurnsMin   = 64                   // consecutive quick turns before an instance returns to the pool; doubles each time
	soloTurnMax    = time.Millisecond     // maximum duration of a quick turn
	returnsExpMax  = 16                   // maximum number of doublings
)

// monitor detects workers that are stuck in one handler call. It first sets a flag that
// ends the turn after the current call. If the turn goes on, this call takes long.
type monitor struct {
	pool     *Pool
	asleep   atomic.Bool
	wake     chan struct{}
	suspects []suspect
}

// suspect is an instance whose current call takes long. The monitor logs a warning only
// after several further checks, because on a busy computer a quick handler may also
// wait for a CPU.
type suspect struct {
	unit  *Unit
	solo  *Worker // its state is 1 until the call returns
	looks int
}

// wakeUp wakes the monitor. A worker calls it when it begins to work.
func (m *monitor) wakeUp() {
	if m.asleep.Load() && m.asleep.CompareAndSwap(true, false) {
		m.wake <- struct{}{}
	}
}

// sighting is what the monitor has seen of a worker.
type sighting struct {
	state uint64 // odd if a handler runs
	times int    // how often the same state was seen again
}

func (m *monitor) run() {
	defer m.pool.running.Done()
	defer m.pool.failOnPanic("monitor")
	ticker := time.NewTicker(monitorPeriod)
	defer ticker.Stop()
	seen := make([]sighting, len(m.pool.workers))
	idle := 0
	looked := time.Now()
	for {
		select {
		case <-m.pool.done:
			return
		case <-ticker.C:
		}
		if late := time.Since(looked); late > 2*monitorPeriod {
			clear(seen) // the computer is overloaded: a call without progress may be waiting for a CPU
			for i := range m.suspects {
				m.suspects[i].looks = 0
			}
		}
		looked = time.Now()
		if m.look(seen) {
			idle = 0
		} else if idle++; idle > monitorIdleMax {
			idle = 0
			ticker.Stop()
			m.asleep.Store(true)
			if (int(m.pool.idle.Load()) < len(m.pool.workers) || m.pool.soloWorks()) && m.asleep.CompareAndSwap(true, false) {
				ticker.Reset(monitorPeriod)
				continue // a worker began in between
			}
			select {
			case <-m.pool.done:
				return
			case <-m.wake:
			}
			ticker.Reset(monitorPeriod)
			looked = time.Now()
		}
	}
}

// look checks all workers. It reports whether any of them works.
func (m *monitor) look(seen []sighting) (working bool) {
	for i, w := range m.pool.workers {
		state := w.state.Load()
		if !w.parked.Load() {
			working = true
		}
		if state&1 == 0 || state != seen[i].state {
			seen[i] = sighting{state: state}
			continue
		}
		seen[i].times++
		if seen[i].times == 1 {
			w.hold.Or(holdYield)
		} else if u := m.pool.takeWorker(w, state); u != nil {
			m.pool.running.Add(1)
			go m.pool.run(w)
			m.pool.countHung(u.proc)
			m.suspects = append(m.suspects, suspect{unit: u, solo: u.worker.Load()})
		}
	}
	m.checkSuspects()
	m.exposeLong()
	return working || len(m.suspects) > 0 || m.pool.soloWorks()
}

// exposeLong makes the messages visible that were sent in the long calls of instances which have left the
// pool because a call took long.
func (m *monitor) exposeLong() {
	for _, w := range m.pool.hungSolos() {
		state := w.state.Load()
		if state&1 == 0 || state != w.seen.state {
			w.seen = sighting{state: state}
		} else if w.seen.times++; w.seen.times > 1 {
			w.suspect.out.expose()
		}
	}
}

// hungSolos are the workers whose instance has left the pool because a call took long.
func (p *Pool) hungSolos() (list []*Worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.solos {
		if w.suspect != nil {
			list = append(list, w)
		}
	}
	return list
}

// soloWorks reports whether one of these workers works.
func (p *Pool) soloWorks() bool {
	return slices.ContainsFunc(p.hungSolos(), func(w *Worker) bool { return !w.parked.Load() })
}

// checkSuspects checks whether the calls of the suspects still run, and logs a warning
// if one has run for looksMin periods.
func (m *monitor) checkSuspects() {
	kept := m.suspects[:0]
	for _, s := range m.suspects {
		if s.solo.state.Load() != 1 {
			continue // the call has returned
		}
		if s.looks++; s.looks == looksMin {
			m.pool.warn(s.unit.proc)
			continue
		}
		kept = append(kept, s)
	}
	clear(m.suspects[len(kept):])
	m.suspects = kept
}

// warn logs, once for each processor, that its handlers take long.
func (p *Pool) warn(proc *processor) {
	if proc.warned.CompareAndSwap(false, true) {
		p.log().Warn("topogen: a handler runs longer than 10 ms and would delay other instances; consider blocking: true",
			slog.String("processor", proc.Name))
	}
}

// takeWorker takes w away from the goroutine that has been in a handler since the given
// state. The goroutine keeps the unit whose handler it runs, on a new worker outside
// the pool. takeWorker returns that unit, or nil if the handler has returned.
func (p *Pool) takeWorker(w *Worker, state uint64) *Unit {
	if state&1 == 0 || !w.state.CompareAndSwap(state, state+1) {
		return nil
	}
	u := w.runner.unit
	if u.queued { // queued during its turn: a queue to itself got room
		w.runq.drop(u)
		u.queued = false
	}
	solo := p.newSolo(u, true)
	solo.runner = w.runner
	solo.state.Store(1)        // in a call
	solo.hold.Store(holdYield) // ends the batch when the handler returns
	defer u.worker.Store(solo) // the goroutine of the handler waits for it; deferred because the observer may end this goroutine
	u.out.expose()             // messages of finished calls need not wait for this call
	p.moved(u, w, solo)
	return u
}

// newSolo makes a worker outside the pool. hung says that u left the pool because a handler hung.
func (p *Pool) newSolo(u *Unit, hung bool) *Worker {
	w := newWorker(p, -1)
	w.single = u
	if hung {
		w.hung, w.suspect = true, u
	}
	u.longTurn = true
	p.mu.Lock()
	p.solos = append(p.solos, w)
	p.mu.Unlock()
	return w
}

// countHung counts a handler that hangs.
func (p *Pool) countHung(proc *processor) {
	if proc.hungInstances.Add(1) == hungMax {
		for _, u := range proc.units {
			u.signal(controlSolo)
		}
	}
}

// moveToSolo moves u to a goroutine of its own. The caller owns u and must not touch it
// afterwards.
func (p *Pool) moveToSolo(w *Worker, u *Unit) {
	solo := p.newSolo(u, true)
	u.proc.hungInstances.Add(1)
	p.running.Add(1)
	w.handOver(u, solo)
	go p.run(solo)
}

// countSoloTurn counts the turns of an instance that left the pool because a handler
// hung. It returns the instance to the pool when its turns are quick again.
func (w *Worker) countSoloTurn(u *Unit, took time.Duration) {
	if took > soloTurnMax {
		w.quickTurns = 0
		if took > 2*monitorPeriod {
			if w.slowTurns++; w.slowTurns == slowTurnsMin {
				w.pool.warn(u.proc)
			}
		}
		return
	}
	if w.quickTurns++; w.quickTurns < soloTurnsMin<<u.soloReturns {
		return
	}
	u.soloReturns = min(u.soloReturns+1, returnsExpMax)
	u.proc.hungInstances.Add(-1)
	if u.queued { // it is the only unit of this worker
		w.runq.pop()
		u.queued = false
	}
	w.single, w.hung = nil, false
	w.handOver(u, w.pool.workers[u.targetWorker.Load()])
}

// exit ends the goroutine of a worker outside the pool whose instance has returned to
// the pool. Goroutines that still have the old worker of the instance may post further
// notes. The poster that would wake the worker forwards them.
func (w *Worker) exit() {
	p := w.pool
	p.mu.Lock()
	p.solos = slices.DeleteFunc(p.solos, func(s *Worker) bool { return s == w })
	p.mu.Unlock()
	w.exited = true
	w.forwardNotes()
	runtime.Goexit()
}

// forwardNotes forwards the notes of a worker whose goroutine has ended to the current
// workers of their instances. The caller has cleared parked.
func (w *Worker) forwardNotes() {
	for more := true; more; {
		w.readNotes()
		w.parked.Store(true)
		more = !w.inbox.empty() && w.parked.CompareAndSwap(true, false)
	}
}
