package piper

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
)

// giveUp ends an instance that has failed and is not restarted.
func (w *watch) giveUp(err error) {
	u, p := w.unit, w.unit.proc.pool
	if w.phase == watchFailed {
		return
	}
	if err != nil {
		w.cause = err
	}
	p.logbook.failure(u, logGaveUp, slog.LevelError, "topogen: an instance failed and is not restarted", withoutStack(w.cause))
	p.supervision.observe(func(o FaultObserver) { o.GaveUp(u.proc.Name, u.Index(), w.cause) })
	p.mu.Lock()
	p.lifecycle.failures.add(fmt.Errorf("%w: %w", ErrGaveUp, w.cause))
	p.mu.Unlock()
	u.proc.faults.gaveUp.Add(1)
	w.gaveUp = true
	w.retire()
}

// scheduleCloseOutputs checks whether an instance that is not restarted may still send
// messages. If not, its outputs are closed, after the turn in which it sent its last
// message.
func (w *watch) scheduleCloseOutputs() {
	if w.phase != watchFailed || w.attempts.waiting.Load() > 0 {
		return
	}
	w.command(command{closeOutputs: true})
}

// closeOutputs closes the outputs of a processor that will send no more messages. If no
// instance of a group is restarted, its receivers need not wait for messages that still
// arrive at the group, because these are discarded.
func (w *watch) closeOutputs() {
	proc := w.unit.proc
	if w.phase != watchFailed {
		return // restarted with its group
	}
	w.failed.Store(true)
	if !slices.ContainsFunc(proc.units, func(u *Unit) bool { return !u.watch().failed.Load() }) {
		proc.pool.events.closeOutputs(func(e *edge) bool { return e.From == proc.index })
	}
	if w.gaveUp && int(proc.group.failedInstances.Add(1)) == len(proc.group.units) {
		proc.group.closeOutputs()
	}
}

// retire ends an instance that is not restarted. It gets turns again, in which its
// messages are discarded.
func (w *watch) retire() {
	if w.phase == watchFailed {
		return
	}
	if w.phase == watchRunning || w.phase == watchStarting {
		w.shutDown()
	}
	w.phase, w.starting, w.restartAt = watchFailed, nil, 0
	if w.cause == nil {
		w.cause = errEnds
	}
	w.attempts.retry(math.MaxInt64) // messages that wait for another attempt are discarded
	w.scheduleCloseOutputs()
	w.resume()
	w.source.end()
	w.finishDelay.end()
	w.unit.worker.Load().schedule(w.unit)
}

// sourcesDone reports to the supervisor, when the topology stops, that the instances
// without inputs must not be started again. Instances with inputs are restarted while
// they have queued messages. For the groups with Finish, sourceStopped reports it
// later, because an instance that is down must be started again for Finish.
func (e *events) sourcesDone() {
	p := e.pool
	if p.spec.Supervisor == nil {
		return
	}
	for _, proc := range p.processors {
		for _, w := range proc.watches {
			if !proc.receives && !proc.group.finishes {
				p.supervision.report(ChildEvent{Kind: ChildInputsDone, Child: w.child()})
			}
		}
	}
}

// sourceStopped reports the same for one instance, when it runs or has just ended.
func (w *watch) sourceStopped() {
	if !w.unit.proc.receives && w.unit.proc.pool.spec.Supervisor != nil {
		w.unit.proc.pool.supervision.report(ChildEvent{Kind: ChildInputsDone, Child: w.child()})
	}
}

// inputsDone reports to the supervisor that all inputs of the group's instances are
// closed and drained.
func (g *group) inputsDone() {
	for _, u := range g.units {
		if w := u.watch(); w != nil {
			g.pool.supervision.report(ChildEvent{Kind: ChildInputsDone, Child: w.child()})
		}
	}
}
