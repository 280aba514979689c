package piper

import (
	"log/slog"

	"github.com/topogen/topogen/runtime/topo"
)

// handleError handles an error of a handler. It reports whether the instance goes on.
func (r *runner) handleError(u *Unit, l *Link, method string, err error) (goesOn bool) {
	p := r.w.pool
	e := p.handlerError(u, l, method, err)
	w := u.watch()
	if w == nil {
		p.lifecycle.fail(e)
		return false
	}
	p.logbook.record(e)
	then := u.proc.Watch.Then
	if w.isolation.ends(err) {
		then = ThenStop
	}
	if w.isolation.refuses(err) {
		then = ThenSkip
		if w.current != nil {
			w.current.uncountAttempt()
		}
	}
	goesOn = w.resolveMessage(l, e, then)
	switch {
	case l == nil:
	case goesOn && w.lastRetries && u.proc.Watch.Delay > 0:
		w.delay(l)
	default:
		l.relist()
	}
	if goesOn {
		p.logbook.failure(u, logHandler, slog.LevelWarn, "topogen: a handler has failed", e)
		return true
	}
	w.reportEnd(w.failureKind(), e)
	return false
}

// failureKind is ChildHung if the process of the instance was killed, and ChildFailed
// otherwise.
func (w *watch) failureKind() ChildEventKind {
	if w.isolation.killed.Load() {
		return ChildHung
	}
	return ChildFailed
}

// resolveMessage decides whether the current message is handled again or given up,
// after a handler that was called for l has failed. It reports whether the instance
// goes on. There is no current message in two cases: the message is a tick, which has
// only one attempt, or the message was handled and a later call for it has failed.
func (w *watch) resolveMessage(l *Link, e *HandlerError, then Then) (goesOn bool) {
	d := w.current
	w.current, w.lastAttempts, w.lastRetries = nil, 1, false
	if d != nil {
		w.lastAttempts = d.attemptCount()
	}
	switch proc := w.unit.proc; {
	case d == nil:
		if l != nil && proc.pool.edges[l.edge].From < 0 {
			proc.faults.dropped.Add(1)
		}
	case then != ThenSkip && d.attemptCount() < proc.Watch.Attempts:
		d.keepForRetry()
		w.retrying.Add(1)
		w.lastRetries = true
	default:
		w.rejectMessage(d, e)
	}
	return then != ThenStop
}

// rejectMessage makes the message a dead letter, or counts it as dropped.
func (w *watch) rejectMessage(d untypedDelivery, e *HandlerError) {
	u := w.unit
	p := u.proc.pool
	edge := d.edgeIndex()
	letter := topo.NewDeadLetter(topo.DeadLetter{
		Time: p.time(p.clock()), Processor: u.proc.Name, Instance: u.Index(),
		Edge: edge, Message: p.edges[edge].Message, Attempts: d.attemptCount(), Err: forCaller(e.Err),
	}, d.content())
	d.drop(e.Err)
	calling := u.out.calling
	u.out.calling = true // the pool itself sends the dead letter
	if u.cell.DeadLetter(letter) {
		u.proc.faults.deadLetters.Add(1)
	} else {
		u.proc.faults.dropped.Add(1)
	}
	u.out.calling = calling
}

// rejectRetried gives up a message that was kept for another attempt, because the
// instance is not restarted.
func (w *watch) rejectRetried(d untypedDelivery) {
	w.rejectMessage(d, &HandlerError{Err: w.cause})
	w.scheduleCloseOutputs()
}
