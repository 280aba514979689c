package piper

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/patient"
)

// carryOut carries out the commands for the instance.
func (w *watch) carryOut() {
	u := w.unit
	p := u.proc.pool
	p.supervision.mu.Lock()
	commands := w.commands
	w.commands = nil
	inputsDone := w.inputsDone
	p.supervision.mu.Unlock()
	for _, o := range commands {
		if o.started != nil {
			w.instanceStarted(o.started)
			continue
		}
		if o.late != nil {
			w.startTimedOut(o.late)
			continue
		}
		if o.closeOutputs {
			w.closeOutputs()
			continue
		}
		if o.ended != nil {
			w.isolation.ended(o.ended)
			continue
		}
		switch o.Kind {
		case EffectWait:
			if w.phase == watchRunning { // the instance ended without an error
				w.shutDown()
			}
			w.restartAt = o.at
			u.proc.wakeAt(u, o.at)
		case EffectStart:
			if w.phase == watchRunning {
				w.shutDown()
			}
			if !inputsDone {
				w.startInstance()
				continue
			}
			e := ChildEvent{Kind: ChildNotStarted, Child: w.child()} // the inputs closed after the command was given
			if u.proc.group.finishes {
				e.Err = cmp.Or(w.cause, errEnds)
			}
			p.supervision.report(e)
		case EffectStop:
			w.stopInstance(o.stop)
		case EffectDone:
			switch {
			case w.phase == watchRunning:
				w.source.end() // the instance still handles messages
			case w.cause != nil && (!inputsDone || u.proc.group.finishes):
				w.giveUp(w.cause) // messages or Finish were still to come
			default:
				w.retire()
			}
		case EffectGiveUp:
			w.giveUp(o.Err)
		}
	}
}

// stopInstance ends a running instance, as the supervisor has decided.
func (w *watch) stopInstance(number uint64) {
	p := w.unit.proc.pool
	switch {
	case w.phase == watchStarting, w.unit.out.inServe: // continues when the start, or Serve, has returned
		w.deferredStop = number
		return
	case w.phase == watchRunning:
		if !w.finishDelay.beginUnlessFinishing() {
			p.supervision.answerStop(w, number, ChildNotStopped)
			return
		}
		w.shutDown()
		w.cause = errStopped
	}
	closed, limit := w.closed, p.lifecycle.closeTimeout(w.unit)
	if d := w.unit.proc.Watch.Shutdown; d > 0 {
		limit = d
	}
	p.supervision.spawn(func() {
		if isOpen(closed) {
			late := make(chan struct{})
			defer patient.AfterFunc(limit, func() { close(late) }).Stop()
			select {
			case <-closed:
			case <-late:
			case <-p.done:
			}
		}
		p.supervision.answerStop(w, number, ChildStopped)
	})
}

// giveUp ends an instance that has failed and is not restarted.
func (w *watch) giveUp(err error) {
	u, p := w.unit, w.unit.proc.pool
	if w.phase == watchRetired {
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

// retire ends an instance that is not restarted. It gets turns again, in which its
// messages are discarded.
func (w *watch) retire() {
	if w.phase == watchRetired {
		return
	}
	if w.phase == watchRunning || w.phase == watchStarting {
		w.shutDown()
	}
	w.phase, w.starting, w.restartAt = watchRetired, nil, 0
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

// scheduleCloseOutputs checks whether an instance that is not restarted may still send
// messages. If not, its outputs are closed, after the turn in which it sent its last
// message.
func (w *watch) scheduleCloseOutputs() {
	if w.phase != watchRetired || w.attempts.waiting.Load() > 0 {
		return
	}
	w.command(command{closeOutputs: true})
}

// closeOutputs closes the outputs of a processor that will send no more messages. If no
// instance of a group is restarted, its receivers need not wait for messages that still
// arrive at the group, because these are discarded.
func (w *watch) closeOutputs() {
	proc := w.unit.proc
	if w.phase != watchRetired {
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

// reportEnd reports the end of the instance to the supervisor. The worker of the
// instance calls it.
func (w *watch) reportEnd(kind ChildEventKind, err error) {
	u := w.unit
	p := u.proc.pool
	if kind != ChildEnded {
		w.cause = err
		w.shutDown()
		p.logbook.failure(u, logFailed, slog.LevelWarn, "topogen: an instance has failed", err)
		p.supervision.observe(func(o FaultObserver) { o.Failed(u.proc.Name, u.Index(), err) })
	}
	if kind == ChildEnded && p.stopping.Load() {
		w.sourceStopped()
	}
	p.supervision.report(ChildEvent{Kind: kind, Child: w.child(), Err: err})
}

// sourceStopped reports to the supervisor that an instance without inputs must not be started
// again, because the topology stops. The instance runs or has just ended.
func (w *watch) sourceStopped() {
	if !w.unit.proc.receives && w.unit.proc.pool.spec.Supervisor != nil {
		w.unit.proc.pool.supervision.report(ChildEvent{Kind: ChildInputsDone, Child: w.child()})
	}
}

// serveEnded handles the end of Serve.
func (w *watch) serveEnded(err error) {
	(*w.cancelServe.Swap(nil))()
	p := w.unit.proc.pool
	switch number := p.supervision.unansweredStop(w); {
	case number != 0:
		w.stopInstance(number)
	case err != nil:
		e := p.handlerError(w.unit, nil, "Serve", err)
		p.logbook.record(e)
		w.reportEnd(w.isolation.failureKind(), e)
	default:
		w.reportEnd(ChildEnded, nil)
	}
}

// pingDone handles the end of Ping: Ping has returned Done, or must not be called again
// because the topology stops.
func (w *watch) pingDone() {
	u := w.unit
	switch {
	case u.proc.pool.stopping.Load():
		u.ping = pingNone
		if u.proc.Ping || w.phase != watchRunning { // a Serve that runs ends the source when it returns
			w.source.end()
		}
		if w.phase == watchRunning {
			w.sourceStopped()
		} else {
			w.dropTicks()
		}
	case u.ping != pingNone:
		u.ping = pingNone
		w.reportEnd(ChildEnded, nil)
	}
}

// afterHang ends the instance in whose call the goroutine of r hangs.
func (w *watch) afterHang(r *runner, cause error) {
	u := w.unit
	method := r.method()
	e := u.proc.pool.handlerError(u, r.link, method, cause)
	u.proc.pool.logbook.record(e)
	if w.attempts.current != nil {
		w.attempts.current.detach()
	}
	w.attempts.resolve(r.link, e, ThenStop)
	if r.link != nil {
		r.link.endDrain()
		r.link.relist()
	}
	w.cancel(cause)
	u.out.calling = false
	u.out.publish(nil) // sent messages were accepted; the goroutine does not return from user code
	u.out.inServe = false
	if cancel := w.cancelServe.Swap(nil); cancel != nil {
		(*cancel)()
	}
	u.out.settle()
	if method == "Finish" { // a failed Finish ends Run, because the group could not finish otherwise
		u.proc.pool.lifecycle.end(e)
	}
	w.reportEnd(ChildHung, e)
}

// shutDown ends the instance in the pool: it gets no more turns. Its Close is called,
// unless an abandoned goroutine is still in the instance.
func (w *watch) shutDown() {
	u := w.unit
	w.suspend()
	w.phase = watchDown
	w.finishDelay.begin()
	w.restartAt, w.deferredStop = 0, 0
	u.ping, u.serving = pingNone, false
	if u.proc.pool.stopping.Load() {
		w.source.end() // the next instance will not send on its own
		w.dropTicks()
	}
	w.holder.drop()
	if !u.started {
		return
	}
	u.started = false
	if w.goroutineLeft {
		return
	}
	w.closed = u.proc.pool.lifecycle.closeInBackground(u)
}

// dropTicks drops the queued ticks of an instance that is down when the topology stops.
// A restart only for ticks would delay the end of Run.
func (w *watch) dropTicks() {
	u := w.unit
	g := u.proc.group
	g.beginActivity()
	defer g.endActivity(nil)
	w.droppingTicks = true
	for l := u.inlinks.Load(); l != nil; l = l.nextIn.Load() {
		edge := &u.proc.pool.edges[l.heads[0].Index()] // not l.edge, because no message is being handled
		if edge.From < 0 && !l.empty() {
			_, _ = l.inlet.Drain(1) // discards the tick, because HasFailed is true
		}
	}
	w.droppingTicks = false
}

// finishDelay delays the end of a group with Finish until an instance that is down is started again
// or given up. The call of Finish of the instance counts like a queued message.
type finishDelay struct {
	group *group
	on    atomic.Bool // the delay counts in group.activity; the worker writes it, and drainError reads it
}

func (d *finishDelay) begin() {
	if d.group.finishes && !d.on.Load() {
		d.on.Store(true)
		d.group.beginActivity()
	}
}

// beginUnlessFinishing begins the delay and reports whether the instance, which runs, may be
// ended. It may not if the group has begun to finish: the instance must get Finish, because no
// new one would be started.
func (d *finishDelay) beginUnlessFinishing() (mayEnd bool) {
	if !d.group.finishes {
		return true
	}
	d.begin() // first, so that the group does not begin to finish in between
	d.group.mu.Lock()
	finishing := d.group.phase >= phaseFinishing
	d.group.mu.Unlock()
	if finishing {
		d.end()
	}
	return !finishing
}

func (d *finishDelay) end() {
	if d.on.Load() {
		d.on.Store(false)
		d.group.endActivity(nil)
	}
}
