package piper

import (
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// giveUp is told that the instance has failed for good.
func (w *Worker) giveUp(v *watch, err error) {
	u, p := v.unit, w.pool
	if v.phase == watchFailed {
		return
	}
	if err != nil {
		v.cause = err
	}
	p.logLimited(u, logGaveUp, slog.LevelError, "topogen: an instance has failed for good", withoutStack(v.cause))
	p.observeFault(func(o FaultObserver) { o.GaveUp(u.proc.Name, u.Index(), v.cause) })
	p.mu.Lock()
	p.failures.add(fmt.Errorf("%w: %w", ErrGaveUp, v.cause))
	p.mu.Unlock()
	u.proc.faults.gaveUp.Add(1)
	v.gaveUp = true
	w.retire(v)
}

// fallSilent is told that something has ended of which an instance that is gone
// might have sent yet. When it is the last, its outputs are closed, behind the turn
// in which that was sent.
func (w *watch) scheduleCloseOutputs() {
	if w.phase != watchFailed || w.retrying.Load() > 0 {
		return
	}
	p := w.unit.proc.pool
	p.supervision.Lock()
	w.orders = append(w.orders, order{closeOutputs: true})
	p.supervision.Unlock()
	w.unit.signal(controlOrder)
}

// silenced closes the outputs of a processor of which nothing more will come. Where
// all instances of a group were given up, who receives from them need not wait for
// what still comes to them, and is discarded.
func (w *watch) closeOutputs() {
	proc := w.unit.proc
	if w.phase != watchFailed {
		return // made anew with its group
	}
	w.failed.Store(true)
	if !slices.ContainsFunc(proc.units, func(u *Unit) bool { return !u.watch().failed.Load() }) {
		proc.pool.closeOutputs(func(e *edge) bool { return e.From == proc.index })
	}
	if w.gaveUp && int(proc.group.failedInstances.Add(1)) == len(proc.group.units) {
		proc.group.closeOutputs()
	}
}

// retire is told that the instance is gone and that there will be no other. It
// has turns again, in which its messages are discarded.
func (w *Worker) retire(v *watch) {
	u := v.unit
	if v.phase == watchFailed {
		return
	}
	if v.phase == watchRunning || v.phase == watchStarting {
		v.shutDown()
	}
	v.phase, v.starting, v.startDeadline, v.restartAt = watchFailed, nil, 0, 0
	if v.cause == nil {
		v.cause = errEnds
	}
	v.retryDue(math.MaxInt64) // what waits for another attempt is discarded
	v.scheduleCloseOutputs()
	v.resume()
	v.endSource()
	w.schedule(u)
}

// sourcesDone tells the supervisor, when the topology stops, that an instance
// without inputs has nothing left to do: it is not started again. Others are while
// messages wait for them.
func (p *Pool) sourcesDone() {
	if p.spec.Supervisor == nil {
		return
	}
	receives := make([]bool, len(p.processors))
	for i := range p.edges {
		receives[p.edges[i].To] = true
	}
	for _, proc := range p.processors {
		for _, w := range proc.watches {
			if !receives[proc.index] || bug.On(bug.DrainWithoutRestart) {
				p.reportToSupervisor(ChildEvent{Kind: ChildInputsDone, Child: w.child()})
			}
		}
	}
}

// inputsDone tells the supervisor that all inputs of a group's instances are
// closed and drained.
func (g *group) inputsDone() {
	for _, u := range g.units {
		if w := u.watch(); w != nil {
			g.pool.reportToSupervisor(ChildEvent{Kind: ChildInputsDone, Child: w.child()})
		}
	}
}
