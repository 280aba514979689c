package piper

import (
	"time"
)

// wake is when a unit is to look what it waits for is due. There is one for all
// of it, so that none is left behind by what is not waited for any more.
type wakeup struct {
	at    int64       // 0: never
	timer *time.Timer // under a Stepper its worker has an entry instead
}

// wakeAt has woken called at a time, or sooner.
func (u *Unit) wakeAt(at int64) {
	k := &u.proc.wakeups[u.index]
	if k.at != 0 && k.at <= at {
		return
	}
	k.at = at
	p := u.proc.pool
	switch d := time.Duration(at - p.clock()); {
	case p.stepper != nil:
		p.stepper.wakeAt(u, at)
	case k.timer == nil:
		k.timer = time.AfterFunc(d, func() { u.signal(controlTimer) })
	default:
		k.timer.Reset(d)
	}
}

// stopWakes stops timers, which hold on to all of the topology.
func (p *Pool) stopWakeups() {
	for _, proc := range p.processors {
		for i := range proc.wakeups {
			if timer := proc.wakeups[i].timer; timer != nil {
				timer.Stop()
			}
		}
	}
}

// SetAlarm has Alarm called at a time since the beginning. A later call changes
// it.
func (u *Unit) SetAlarm(at time.Duration) {
	b := &u.proc.boxes[u.index]
	if b.alarmAt == int64(at) {
		return
	}
	b.alarmAt = int64(at)
	u.wakeAt(b.alarmAt)
}

// woken does what is due at a time that u waited for.
func (w *Worker) handleWakeup(u *Unit) {
	now := w.pool.clock()
	k := &u.proc.wakeups[u.index]
	if k.at == 0 || k.at > now {
		return
	}
	k.at = 0
	due := func(at *int64) bool {
		switch {
		case *at == 0:
			return false
		case *at > now:
			u.wakeAt(*at)
			return false
		}
		*at = 0
		return true
	}
	if u.proc.boxes != nil && due(&u.proc.boxes[u.index].alarmAt) {
		u.pendingCalls |= callAlarm
	}
	v := u.watch()
	if v == nil {
		return
	}
	if due(&v.restartAt) {
		w.pool.reportToSupervisor(ChildEvent{Kind: ChildDue, Child: v.child()})
	}
	if due(&v.heldCheckAt) {
		u.pendingCalls |= callHeld
	}
	if due(&v.retryAt) {
		v.retryDue(now)
	}
	if due(&v.startDeadline) {
		w.startTimedOut(v)
	}
	if due(&v.hangDeadline) {
		w.pool.stepper.endHang(v)
	}
}
