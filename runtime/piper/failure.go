package piper

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/backoff"
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
		if w.attempts.current != nil {
			w.attempts.current.uncountAttempt()
		}
	}
	goesOn = w.attempts.resolve(l, e, then)
	switch {
	case l == nil:
	case goesOn && w.attempts.willRetry && u.proc.Watch.Delay > 0:
		w.attempts.delay(l)
	default:
		l.relist()
	}
	if goesOn {
		p.logbook.failure(u, logHandler, slog.LevelWarn, "topogen: a handler has failed", e)
		return true
	}
	w.reportEnd(w.isolation.failureKind(), e)
	return false
}

// attempts are the attempts of a watched instance at its messages.
type attempts struct {
	unit      *Unit
	current   untypedDelivery // the current message, or nil
	waiting   atomic.Int32    // number of messages that wait for another attempt
	last      int             // attempts at the message that resolve handled last
	willRetry bool            // that message waits for another attempt
	delayed   []delayed       // links whose first message waits for its next attempt
	dueAt     int64           // when the first of delayed is due; 0 if there is none
}

// delayed is a link whose first message waits for its next attempt. The messages behind
// it wait too, which keeps the order. Other links are not affected.
type delayed struct {
	link *Link
	at   int64
}

// resolve decides whether the current message is handled again or given up,
// after a handler that was called for l has failed. It reports whether the instance
// goes on. There is no current message in two cases: the message is a tick, which has
// only one attempt, or the message was handled and a later call for it has failed.
func (a *attempts) resolve(l *Link, e *HandlerError, then Then) (goesOn bool) {
	d := a.current
	a.current, a.last, a.willRetry = nil, 1, false
	if d != nil {
		a.last = d.attemptCount()
	}
	switch proc := a.unit.proc; {
	case d == nil:
		if l != nil && proc.pool.edges[l.edge].From < 0 {
			proc.faults.dropped.Add(1)
		}
	case then != ThenSkip && d.attemptCount() < proc.Watch.Attempts:
		d.keepForRetry()
		a.waiting.Add(1)
		a.willRetry = true
	default:
		a.reject(d, e)
	}
	return then != ThenStop
}

// reject makes the message a dead letter, or counts it as dropped.
func (a *attempts) reject(d untypedDelivery, e *HandlerError) {
	u := a.unit
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

// delay holds back a link for the delay before the next attempt at its message.
func (a *attempts) delay(l *Link) {
	p := l.to.proc.pool
	chance := rand.Float64
	if p.stepper != nil {
		chance = p.stepper.random.Float64
	}
	watch, now := l.to.proc.Watch, p.clock()
	d := backoff.Delay(watch.Delay, watch.MaxDelay, watch.Jitter, a.last, chance)
	at := now + min(int64(d), math.MaxInt64-now)
	l.listed = true // so that new messages do not make it ready
	a.delayed = append(a.delayed, delayed{l, at})
	if a.dueAt == 0 || at < a.dueAt {
		a.dueAt = at
		a.unit.proc.wakeAt(a.unit, at)
	}
}

// retry makes those links ready whose delay ends at or before now.
func (a *attempts) retry(now int64) {
	a.dueAt = 0
	a.delayed = slices.DeleteFunc(a.delayed, func(d delayed) bool {
		if d.at <= now {
			a.unit.ready.push(d.link)
			return true
		}
		if a.dueAt == 0 || d.at < a.dueAt {
			a.dueAt = d.at
		}
		return false
	})
	if a.dueAt != 0 {
		a.unit.proc.wakeAt(a.unit, a.dueAt)
	}
}
