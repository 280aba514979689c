package piper

import (
	"cmp"
	"log/slog"
	"sync/atomic"
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

// finishDelay delays the end of a group with Finish until an instance that is down is started again
// or given up. The call of Finish of the instance counts like a queued message.
type finishDelay struct {
	group *group
	on    atomic.Bool
}

func (d *finishDelay) begin() {
	if d.group.finishes && !d.on.Load() {
		d.on.Store(true)
		d.group.enter()
	}
}

// beginUnlessFinishing begins the delay, unless the group has begun to finish. Then the instance, which runs, must
// get Finish, because no new instance would be started.
func (d *finishDelay) beginUnlessFinishing() (begun bool) {
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
		d.group.leave(nil)
	}
}

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
			w.processEnded(o.ended)
			continue
		}
		switch o.Kind {
		case EffectWait:
			if w.phase == watchRunning { // the instance ended without an error
				w.shutDown()
			}
			w.restartAt = o.at
			u.wakeAt(o.at)
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
