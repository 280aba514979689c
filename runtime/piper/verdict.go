package piper

import (
	"log/slog"

	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/topo"
)

// erred decides what an error of a handler does. It reports whether the instance
// goes on.
func (r *runner) erred(u *Unit, l *Link, method string, err error) (goesOn bool) {
	p := r.w.pool
	e := p.handlerError(u, l, method, err)
	w := u.watch()
	if w == nil {
		p.fail(e)
		return false
	}
	p.record(e)
	then := u.proc.Watch.Then
	if w.endsProcess(err) {
		then = ThenStop
	}
	if w.refuses(err) {
		then = ThenSkip
		if w.hand != nil {
			w.hand.untry()
		}
	}
	goesOn = w.settle(l, e, then)
	switch {
	case l == nil:
	case goesOn && w.repeats && u.proc.Watch.Delay > 0 && !bug.On(bug.RetryAtOnce):
		w.delay(l)
	default:
		l.relist()
	}
	if goesOn {
		p.sayOften(u, sayHandler, slog.LevelWarn, "topogen: a handler has failed", e)
		return true
	}
	w.end(w.failedHow(), e)
	return false
}

// failedHow is whether the instance has failed of itself, or was killed.
func (w *watch) failedHow() ChildEventKind {
	if w.killed.Load() {
		return ChildHung
	}
	return ChildFailed
}

// settle decides what becomes of the message in hand, when a handler has failed
// that was called for l. It reports whether the instance goes on. The hand is empty
// for a tick, for which there is one attempt, and where the message was handled and
// what was called for it after that has failed.
func (w *watch) settle(l *Link, e *HandlerError, then Then) (goesOn bool) {
	h := w.hand
	w.hand, w.attempted, w.repeats = nil, 1, false
	if h != nil {
		w.attempted = h.tried()
	}
	switch proc := w.unit.proc; {
	case h == nil:
		if l != nil && proc.pool.edges[l.edge].From < 0 {
			proc.faults.dropped.Add(1)
		}
	case then == ThenStop && bug.On(bug.HandLost):
	case then != ThenSkip && h.tried() < proc.Watch.Attempts:
		h.repeat()
		w.repeating.Add(1)
		w.repeats = true
	default:
		w.giveUpMessage(h, e)
	}
	return then != ThenStop
}

// giveUpMessage makes a dead letter of a message, or counts it as dropped.
func (w *watch) giveUpMessage(h held, e *HandlerError) {
	u := w.unit
	p := u.proc.pool
	edge := h.of()
	letter := topo.NewDeadLetter(topo.DeadLetter{
		Time: p.time(p.clock()), Processor: u.proc.Name, Instance: u.Index(),
		Edge: edge, Message: p.edges[edge].Message, Attempts: h.tried(), Err: e.Err,
	}, h.message())
	h.drop(e.Err)
	calling := u.out.calling
	u.out.calling = true // by the pool itself
	if u.cell.DeadLetter(letter) {
		if bug.On(bug.LetterTwice) {
			u.cell.DeadLetter(letter)
		}
		u.proc.faults.deadLetters.Add(1)
	} else {
		u.proc.faults.dropped.Add(1)
	}
	u.out.calling = calling
}

// giveUpLast gives up a message that would have been handled again, had the instance
// not failed for good.
func (w *watch) giveUpLast(h held) {
	w.giveUpMessage(h, &HandlerError{Err: w.cause})
	w.fallSilent()
}
