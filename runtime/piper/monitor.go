package piper

import (
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

const (
	monitorPeriod  = 5 * time.Millisecond // a handler is found after two to three of them
	monitorIdleMax = 20                   // periods without work, then the monitor sleeps
	looksMin       = 3                    // further periods in one call before the pool warns of it
	slowTurnsMin   = 3                    // long turns outside the pool before it does
	hungMax        = 2                    // hung instances at once before all of their processor leave the pool
	soloTurnsMin   = 64                   // quick turns in a row before an instance comes back, twice as many each time
	soloTurnMax    = time.Millisecond     // what a quick turn may take
	returnsExpMax  = 16                   // doubling ends
)

// monitor looks whether a worker is stuck in one handler. It first asks the
// turn to end; a turn that does not is one call that takes long.
type monitor struct {
	pool     *Pool
	asleep   atomic.Bool
	wake     chan struct{}
	suspects []suspect
}

// suspect is an instance that hangs and may deserve a warning: not before it was
// seen to for long, since on a busy machine a quick handler may look the same.
type suspect struct {
	unit  *Unit
	solo  *Worker // its state is 1 while the call has not returned
	looks int
}

// rouse is called by a worker that begins to work.
func (m *monitor) wakeUp() {
	if m.asleep.Load() && m.asleep.CompareAndSwap(true, false) {
		m.wake <- struct{}{}
	}
}

type sighting struct {
	state uint64 // odd: a handler runs
	times int    // it was seen again
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
			clear(seen) // the machine is short of processors: what stands still may just not get one
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
			if int(m.pool.idle.Load()) < len(m.pool.workers) && m.asleep.CompareAndSwap(true, false) {
				ticker.Reset(monitorPeriod)
				continue // one began in between
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

// look reports whether any worker works.
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
	m.suspect()
	return working || len(m.suspects) > 0
}

// suspect looks at those again that were found to hang.
func (m *monitor) suspect() {
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

// warn says once for a processor that its handlers take long.
func (p *Pool) warn(proc *processor) {
	if proc.warned.CompareAndSwap(false, true) {
		p.log().Warn("topogen: a handler runs longer than 10 ms and would hold up others; consider blocking: true",
			slog.String("processor", proc.Name))
	}
}

// take takes w from the goroutine that hangs in a handler since state, and
// leaves it the unit that it hangs in, as a worker of its own. It returns nil
// where the handler has come back.
func (p *Pool) takeWorker(w *Worker, state uint64) *Unit {
	if state&1 == 0 || !w.state.CompareAndSwap(state, state+1) {
		return nil
	}
	u := w.runner.unit
	if u.queued { // since its turn began: it has room in a queue to itself
		w.runq.drop(u)
		u.queued = false
	}
	solo := p.newSolo(u)
	solo.hung, solo.runner = true, w.runner
	solo.state.Store(1)        // in a call
	solo.hold.Store(holdYield) // ends the batch when the handler returns
	defer u.worker.Store(solo) // the handler's goroutine waits for it, even if the observer ends this one
	u.out.expose()             // what finished calls have sent need not wait for this one
	p.moved(u, w, solo)
	return u
}

// newSolo makes a worker outside the pool.
func (p *Pool) newSolo(u *Unit) *Worker {
	w := newWorker(p, -1)
	w.single = u
	u.longTurn = true
	p.mu.Lock()
	p.solos = append(p.solos, w)
	p.mu.Unlock()
	return w
}

// struck counts a handler that hangs.
func (p *Pool) countHung(proc *processor) {
	if proc.hungInstances.Add(1) == hungMax {
		for _, u := range proc.units {
			u.signal(controlSolo)
		}
	}
}

// solo moves u to a goroutine of its own. The caller is its owner and does not
// touch it afterwards.
func (p *Pool) moveToSolo(w *Worker, u *Unit) {
	solo := p.newSolo(u)
	solo.hung = true
	u.proc.hungInstances.Add(1)
	p.running.Add(1)
	w.handOver(u, solo)
	go p.run(solo)
}

// reconsider counts the turns of an instance that left the pool because a
// handler hung, and takes it back when they are quick again.
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
	if u.queued { // it is the only one here
		w.runq.pop()
		u.queued = false
	}
	w.single, w.hung = nil, false
	w.handOver(u, w.pool.workers[u.targetWorker.Load()])
}

// vacate ends the goroutine of a worker outside the pool whose instance has gone
// back. Notes may come yet, from who saw before where the instance was at home:
// whoever would wake the worker passes them on instead.
func (w *Worker) exit() {
	p := w.pool
	p.mu.Lock()
	p.solos = slices.DeleteFunc(p.solos, func(s *Worker) bool { return s == w })
	p.mu.Unlock()
	w.exited = true
	w.forwardNotes()
	runtime.Goexit()
}

// passOn does for a vacant worker what its goroutine would: all notes go to where
// their instances are at home now. The caller has ended the worker's sleep.
func (w *Worker) forwardNotes() {
	for more := true; more; {
		w.readNotes()
		w.parked.Store(true)
		more = !w.inbox.empty() && w.parked.CompareAndSwap(true, false)
	}
}
