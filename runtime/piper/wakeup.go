package piper

import (
	"time"
)

// wakeup is the time at which a unit checks its deadlines. A unit has one wakeup for
// all of them, so that no timer is left over from a deadline that was removed.
type wakeup struct {
	at    int64       // 0 means never
	timer *time.Timer // nil under a Stepper, whose worker has an entry instead
}

// wakeAt makes a unit check its deadlines at the given time or earlier.
func (p *processor) wakeAt(u *Unit, at int64) {
	k := &p.wakeups[u.index]
	if k.at != 0 && k.at <= at {
		return
	}
	k.at = at
	switch d := time.Duration(at - p.pool.clock()); {
	case p.pool.stepper != nil:
		p.pool.stepper.wakeAt(u, at)
	case k.timer == nil:
		k.timer = time.AfterFunc(d, func() { u.signal(controlTimer) })
	default:
		k.timer.Reset(d)
	}
}

// fire handles the deadlines of u that have passed.
func (k *wakeup) fire(u *Unit) {
	p := u.proc.pool
	now := p.clock()
	if k.at == 0 || k.at > now {
		return
	}
	k.at = 0
	due := func(at *int64) bool {
		switch {
		case *at == 0:
			return false
		case *at > now:
			u.proc.wakeAt(u, *at)
			return false
		}
		*at = 0
		return true
	}
	if in := u.Inputs(); in != nil {
		in.checkAlarm(now)
	}
	v := u.watch()
	if v == nil {
		return
	}
	if due(&v.restartAt) {
		p.supervision.report(ChildEvent{Kind: ChildDue, Child: v.child()})
	}
	if due(&v.isolation.heldCheckAt) {
		u.pendingCalls |= callHeld
	}
	if due(&v.attempts.dueAt) {
		v.attempts.retry(now)
	}
	if due(&v.hangDeadline) {
		p.stepper.endHang(v)
	}
}
