package piper

import (
	"cmp"
	"log/slog"
)

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

func (w *watch) child() Child { return Child{w.unit.proc.index, w.unit.Index()} }

// shutDown ends the instance in the pool: it gets no more turns. Its Close is called,
// unless an abandoned goroutine is still in the instance.
func (w *watch) shutDown() {
	u := w.unit
	w.suspend()
	w.phase = watchDown
	w.awaitRestart()
	w.restartAt, w.deferredStop = 0, 0
	u.ping, u.serving = pingNone, false
	if u.proc.pool.stopping.Load() {
		w.endSource() // the next instance will not send on its own
		w.dropTicks()
	}
	w.dropHolds(w.holder)
	if !u.started {
		return
	}
	u.started = false
	if w.goroutineLeft {
		return
	}
	w.closed = u.proc.pool.lifecycle.closeInBackground(u)
}

// awaitRestart delays the end of the group until the instance, which is down, is started again
// or given up. Its call of Finish counts like a queued message.
func (w *watch) awaitRestart() {
	if g := w.unit.proc.group; g.finishes && !w.awaited.Load() {
		w.awaited.Store(true)
		g.enter()
	}
}

// endsOnItsOwn reports whether the group of the instance, which runs, has Finish and has begun to
// finish. Then the instance must get Finish, because no new instance would be started. Otherwise
// endsOnItsOwn delays the end of the group until the restart.
func (w *watch) endsOnItsOwn() bool {
	g := w.unit.proc.group
	if !g.finishes {
		return false
	}
	w.awaitRestart() // first, so that the group does not begin to finish in between
	g.mu.Lock()
	finishing := g.phase >= phaseFinishing
	g.mu.Unlock()
	if finishing {
		w.endAwait()
	}
	return finishing
}

// endAwait ends the delay of awaitRestart.
func (w *watch) endAwait() {
	if w.awaited.Load() {
		w.awaited.Store(false)
		w.unit.proc.group.leave(nil)
	}
}

// reportStopped answers the EffectStop with the given number. If the instance has already
// ended in another way, the event of that end was the answer, and reportStopped does
// nothing.
func (w *watch) reportStopped(number uint64) {
	p := w.unit.proc.pool
	p.supervision.mu.Lock()
	defer p.supervision.mu.Unlock()
	if w.stopNumber == number {
		p.supervision.reportLocked(ChildEvent{Kind: ChildStopped, Child: w.child()})
	}
}

// reportNotStopped answers the EffectStop with the given number: the instance runs on.
func (w *watch) reportNotStopped(number uint64) {
	p := w.unit.proc.pool
	p.supervision.mu.Lock()
	defer p.supervision.mu.Unlock()
	if w.stopNumber == number {
		p.supervision.reportLocked(ChildEvent{Kind: ChildNotStopped, Child: w.child()})
	}
}

// unansweredStop is the number of the EffectStop that is not answered yet, or 0.
func (w *watch) unansweredStop() (number uint64) {
	p := w.unit.proc.pool
	p.supervision.mu.Lock()
	defer p.supervision.mu.Unlock()
	return w.stopNumber
}

// carryOut carries out the commands for u.
func (w *Worker) carryOut(u *Unit) {
	v := u.watch()
	w.pool.supervision.mu.Lock()
	commands := v.commands
	v.commands = nil
	inputsDone := v.inputsDone
	w.pool.supervision.mu.Unlock()
	for _, o := range commands {
		if o.started != nil {
			w.instanceStarted(v, o.started)
			continue
		}
		if o.late != nil {
			w.startTimedOut(v, o.late)
			continue
		}
		if o.closeOutputs {
			v.closeOutputs()
			continue
		}
		if o.ended != nil {
			v.isolation.ended(o.ended)
			continue
		}
		switch o.Kind {
		case EffectWait:
			if v.phase == watchRunning { // the instance ended without an error
				v.shutDown()
			}
			v.restartAt = o.at
			u.proc.wakeAt(u, o.at)
		case EffectStart:
			if v.phase == watchRunning {
				v.shutDown()
			}
			if !inputsDone {
				w.startInstance(v)
				continue
			}
			e := ChildEvent{Kind: ChildNotStarted, Child: v.child()} // the inputs closed after the command was given
			if u.proc.group.finishes {
				e.Err = cmp.Or(v.cause, errEnds)
			}
			w.pool.supervision.report(e)
		case EffectStop:
			w.stopChild(v, o.stop)
		case EffectDone:
			switch {
			case v.phase == watchRunning:
				v.endSource() // the instance still handles messages
			case v.cause != nil && (!inputsDone || u.proc.group.finishes):
				w.giveUp(v, v.cause) // messages or Finish were still to come
			default:
				w.retire(v)
			}
		case EffectGiveUp:
			w.giveUp(v, o.Err)
		}
	}
}
