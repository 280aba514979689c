package piper

import (
	"math"
	"time"

	"github.com/topogen/topogen/runtime/internal/patient"
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

// stopWakeups stops the timers, which refer to the whole topology.
func (p *Pool) stopWakeups() {
	for _, proc := range p.processors {
		for i := range proc.wakeups {
			if timer := proc.wakeups[i].timer; timer != nil {
				timer.Stop()
			}
		}
	}
}

// alarm is the next call of Alarm. A check is late if the process was stopped, the host slept,
// or the instance, its worker or the host was busy. The clock of the alarm does not count this
// delay, because the instance cannot know whether its senders were silent in that time.
type alarm struct {
	at     int64 // time of the call on the clock of the alarm; 0 means never
	check  int64 // time of the next check on the clock of the pool; 0 means never
	step   int64 // interval of the checks
	paused int64 // delay of the clock of the alarm behind the clock of the pool
}

// now returns the time on the clock of the alarm. clock is the time on the clock of the pool.
func (a *alarm) now(clock int64) int64 {
	if late := clock - a.check; a.check != 0 && late > a.step {
		a.paused += late
		a.check = clock
	}
	return clock - a.paused
}

// due reports whether Alarm must be called now. If not, wakeAt is the time of the next check.
func (a *alarm) due(clock int64) (due bool, wakeAt int64) {
	switch now := a.now(clock); {
	case a.at == 0:
		return false, 0
	case a.at <= now:
		a.at, a.check = 0, 0
		return true, 0
	case a.check <= clock:
		a.check = clock + min(a.step, a.at-now)
	}
	return false, a.check
}

// Now is the time since the start of the topology, for the deadlines of inputs. Pauses of the
// process do not count.
func (u *Unit) Now() time.Duration {
	clock := u.proc.pool.clock()
	if u.proc.boxes == nil {
		return time.Duration(clock)
	}
	return time.Duration(u.proc.boxes[u.index].alarm.now(clock))
}

// SetAlarm makes the pool call Alarm at the given time of Now. A later call replaces the
// time.
func (u *Unit) SetAlarm(at time.Duration) {
	p, a := u.proc.pool, &u.proc.boxes[u.index].alarm
	if a.at == int64(at) {
		return
	}
	clock := p.clock()
	wait := max(int64(at)-a.now(clock), 0)
	a.at, a.step = int64(at), max(wait/patient.Checks, int64(time.Millisecond))
	if p.stepper != nil {
		a.step = math.MaxInt64 // virtual time has no pauses
	}
	a.check = clock + min(a.step, wait)
	u.proc.wakeAt(u, a.check)
}

// handleWakeup handles the deadlines of u that have passed.
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
			u.proc.wakeAt(u, *at)
			return false
		}
		*at = 0
		return true
	}
	if u.proc.boxes != nil {
		switch due, at := u.proc.boxes[u.index].alarm.due(now); {
		case due:
			u.pendingCalls |= callAlarm
		case at != 0:
			u.proc.wakeAt(u, at)
		}
	}
	v := u.watch()
	if v == nil {
		return
	}
	if due(&v.restartAt) {
		w.pool.supervision.report(ChildEvent{Kind: ChildDue, Child: v.child()})
	}
	if due(&v.heldCheckAt) {
		u.pendingCalls |= callHeld
	}
	if due(&v.retryAt) {
		v.retryDue(now)
	}
	if due(&v.hangDeadline) {
		w.pool.stepper.endHang(v)
	}
}
