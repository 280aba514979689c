package piper

import (
	"time"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// An instance whose answers come from goroutines of its own, such as a node that
// waits for a disk and for other machines, has three words for it: Owe keeps its
// group open until Paid, and Wake has Woken called in a turn, where it may send.

// Wake has Woken called in a turn of the unit, soon. Any goroutine may call it, at
// any time between Init and Close. Calls that come before that turn are one. It is
// not lost while the unit may not send since a queue is full: Woken is called when
// there is room. Under a Stepper only a turn may call it.
func (u *Unit) Wake() { u.signal(controlWake) }

// Owe, in a turn of the unit, keeps its group from finishing until Paid was called
// as often, as a message in its queue would. Instances with a Watch do not owe:
// one that fails would never pay.
func (u *Unit) Owe() {
	u.proc.unpaidReplies.Add(1)
	if !bug.On(bug.OwedForgotten) {
		u.proc.group.enter()
	}
}

// Paid, in a turn of the unit, takes back one Owe. What the turn sends after it
// still belongs to the group. It panics where nothing is owed.
func (u *Unit) Paid() {
	if u.proc.unpaidReplies.Add(-1) < 0 {
		panic("pool: Paid without Owe")
	}
	if !bug.On(bug.OwedForgotten) {
		// The turn itself leaves the group later, or the unit is yet to be told that
		// this closes: somebody looks whether it is quiet.
		u.proc.group.activity.Add(^uint64(0))
	}
}

// Stepped reports whether the unit runs under a Stepper: then it is to have no
// goroutines.
func (u *Unit) Stepped() bool { return u.proc.pool.stepper != nil }

// Begin calls Init of all instances, where the unit runs under a Stepper that has not
// taken its first step. Any goroutine may call it.
func (u *Unit) Begin() {
	s := u.proc.pool.stepper
	if s == nil || s.begun.Load() {
		return // it has begun, or is about to in the goroutine that calls this
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
}

// Time is the time of day; under a Stepper that of the Stepper's clock. Any goroutine may
// call it.
func (u *Unit) Time() time.Time {
	if p := u.proc.pool; p.stepper != nil {
		return p.time(p.clock())
	}
	return time.Now()
}

// woken calls Woken where the unit may send. As for Ping, that is when no queue
// within its group is full either: else many answers at once would be more than a
// cycle holds.
func (r *runner) callWoken(u *Unit) {
	if u.paused() {
		return // still asked for
	}
	u.pendingCalls &^= callWoken
	if u.proc.group.isFull() {
		u.wokenPending = !bug.On(bug.WakeLost)
		r.w.awaitRoom(u)
		return
	}
	r.call(u, "Woken", u.cell.Woken)
}
