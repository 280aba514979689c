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
	longCallsMin   = 2                    // long calls of a processor before its other instances leave the pool, too: one may have waited for a CPU
	solosMax       = 1024                 // instances outside the pool because of long calls; further ones delay a worker
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
	defer m.pool.lifecycle.failOnPanic("monitor")
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
		m.pool.calls.look()
		if m.look(seen) {
			idle = 0
		} else if idle++; idle > monitorIdleMax {
			idle = 0
			if !m.fallAsleep() {
				continue
			}
			ticker.Stop()
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

// fallAsleep reports whether the monitor may wait for m.wake. It may not if a worker began since the last look:
// that worker saw the monitor awake. A worker that a goroutine has borrowed works too.
func (m *monitor) fallAsleep() bool {
	m.asleep.Store(true)
	works := slices.ContainsFunc(m.pool.workers, func(w *Worker) bool { return !w.parked.Load() }) || m.soloWorks()
	return !works || !m.asleep.CompareAndSwap(true, false)
}

// look checks all workers and the number of threads. It reports whether any of them works.
func (m *monitor) look(seen []sighting) (working bool) {
	if n := int32(runtime.GOMAXPROCS(0)); n != m.pool.threads.Load() {
		m.pool.threads.Store(n) // the program or the limits of its container have changed it
	}
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
			w.yield.Or(yieldAsked)
		} else if u := m.takeWorker(w, state); u != nil {
			m.foundLong(u)
			m.suspects = append(m.suspects, suspect{unit: u, solo: u.worker.Load()})
		}
	}
	m.checkSuspects()
	m.exposeLong()
	return working || len(m.suspects) > 0 || m.soloWorks()
}

// exposeLong makes the messages visible that were sent in the long calls of instances which have left the
// pool because a call took long.
func (m *monitor) exposeLong() {
	for _, w := range m.hungSolos() {
		state := w.state.Load()
		if state&1 == 0 || state != w.solo.seen.state {
			w.solo.seen = sighting{state: state}
		} else if w.solo.seen.times++; w.solo.seen.times > 1 {
			w.solo.suspect.out.expose()
		}
	}
}

// hungSolos are the workers whose instance has left the pool because a call took long.
func (m *monitor) hungSolos() (list []*Worker) {
	p := m.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.solos {
		if w.solo.suspect != nil {
			list = append(list, w)
		}
	}
	return list
}

// soloWorks reports whether one of these workers works.
func (m *monitor) soloWorks() bool {
	return slices.ContainsFunc(m.hungSolos(), func(w *Worker) bool { return !w.parked.Load() })
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
			m.warn(s.unit.proc)
			continue
		}
		kept = append(kept, s)
	}
	clear(m.suspects[len(kept):])
	m.suspects = kept
}

// warn logs, once for each processor, that its handlers take long.
func (m *monitor) warn(proc *processor) {
	if proc.warned.CompareAndSwap(false, true) {
		m.pool.log().Warn("topogen: a handler runs longer than 10 ms and would delay other instances; consider blocking: true",
			slog.String("processor", proc.Name))
	}
}

// takeWorker takes w away from the goroutine that has been in a handler since the given
// state, and makes another goroutine run w. The goroutine keeps the unit whose handler it runs,
// on a new worker outside the pool. takeWorker returns that unit, or nil if the handler has
// returned.
//
// It has no limit of its own, because without a worker all its instances would wait. But each worker is
// taken at most every two periods, and an idle instance whose inputs are open returns after
// soloIdleMax. So calls that take t add at most (t + soloIdleMax) / (2 * monitorPeriod) instances
// for each worker to the solosMax that leave before a call.
func (m *monitor) takeWorker(w *Worker, state uint64) *Unit {
	if state&1 == 0 || !w.state.CompareAndSwap(state, state+1) {
		return nil
	}
	u := w.runner.unit
	if u.queued { // queued during its turn: a queue to itself got room
		w.runq.drop(u)
		u.queued = false
	}
	solo := m.newSolo(u, true)
	solo.runner = w.runner
	solo.state.Store(1)          // in a call
	solo.yield.Store(yieldAsked) // ends the batch when the handler returns
	defer func() {
		u.worker.Store(solo) // the goroutine of the handler waits for it; deferred because the observer may end this goroutine
		m.goOn(w)
	}()
	u.slow = true
	u.out.expose() // messages of finished calls need not wait for this call
	m.pool.logbook.moved(u, w, solo)
	return u
}

// goOn makes another goroutine run a worker that was taken from its goroutine, or from a caller.
func (m *monitor) goOn(w *Worker) {
	m.pool.running.Add(1) // a caller will make a goroutine for its instance
	if w.lender == nil {
		go m.pool.run(w)
		return
	}
	w.runner, w.lender = w.lender, nil
	w.wake <- struct{}{}
}

// newSolo makes a worker outside the pool. hung says that u left the pool because a call took long.
func (m *monitor) newSolo(u *Unit, hung bool) *Worker {
	p := m.pool
	w := newWorker(p, -1)
	w.solo.unit = u
	if hung {
		w.solo.hung, w.solo.suspect = true, u
	}
	u.longTurn = true
	p.mu.Lock()
	defer p.mu.Unlock()
	p.solos = append(p.solos, w)
	if hung {
		p.slowSolos++
	}
	return w
}

// removeSolo removes a worker whose instance has another one.
func (m *monitor) removeSolo(w *Worker) {
	p := m.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.solos = slices.DeleteFunc(p.solos, func(s *Worker) bool { return s == w })
	if w.solo.suspect != nil {
		p.slowSolos--
	}
}

// foundLong records a call of u that took long.
func (m *monitor) foundLong(u *Unit) {
	u.proc.longCalls.Add(1)
	u.proc.quickTurns.Store(0)
	for _, w := range m.pool.workers {
		w.slow.Store(true)
	}
}

// leaves moves u to a goroutine of its own if its next call may take long: because its last
// calls did, or because several instances of its processor had long calls and u was not
// quick outside the pool before. It reports whether u has left; then the caller must not
// touch it.
func (m *monitor) leaves(u *Unit, w *Worker) bool {
	p := m.pool
	if w.index < 0 || !u.slow && (u.soloReturns > 0 || u.proc.longCalls.Load() < longCallsMin) || !m.mayLeave() {
		return false
	}
	solo := m.newSolo(u, true)
	p.running.Add(1)
	w.handOver(u, solo)
	go p.run(solo)
	return true
}

// mayLeave reports whether one more instance may leave the pool because of long calls.
func (m *monitor) mayLeave() bool {
	p := m.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slowSolos < solosMax
}
