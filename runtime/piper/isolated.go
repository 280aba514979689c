package piper

import (
	"fmt"
	"time"
)

// Refuse counts a message from outside that cannot be sent along an edge, as one
// that was dropped, and says which edge that is.
func (x *External) Refuse(edge int, err error) error {
	x.pool.edges[edge].refused.Add(1)
	return fmt.Errorf("pool: edge %s: %w", x.pool.edgeName(edge), err)
}

// refuses reports whether an error of a call says that the message in hand could not
// be given to the process of the instance. Neither a failure of the instance nor an
// attempt at the message is counted then.
func (w *watch) refuses(err error) bool {
	p := w.process.Load()
	return p != nil && (*p).Refuses(err)
}

// process is what the unit runs in, nil for a goroutine of this process.
func (u *Unit) process() Process {
	if w := u.watch(); w != nil {
		if p := w.process.Load(); p != nil {
			return *p
		}
	}
	return nil
}

// CloseTimeout is how long Close of the unit may take.
func (u *Unit) CloseTimeout() time.Duration { return u.proc.pool.closeTimeout(u) }

// CountKill counts a start of the instance's process that took too long, for which
// the process was killed.
func (u *Unit) CountKill() { u.proc.faults.healthCheckKills.Add(1) }

// heldEvery is how often an instance in a process that holds work is asked whether it
// still does: its goroutines may release between two calls.
const heldEvery = 100 * time.Millisecond

// SetHolds says what an instance in a process holds. It is called in a turn of the
// instance.
func (u *Unit) SetHolds(n int) {
	u.watch().holder.set(n)
	u.worker.Load().scheduleHeld(u)
}

// held asks an instance in a process what it holds.
func (r *runner) callHeld(u *Unit) {
	u.pendingCalls &^= callHeld
	p := u.process()
	if p == nil {
		return
	}
	r.call(u, "Held", func() error {
		life := u.Enter() // a process that hangs is killed, as in other calls
		err := p.Held()
		life.Leave()
		return err
	})
	r.w.scheduleHeld(u)
}

// askHeld has an instance that holds work asked again.
func (w *Worker) scheduleHeld(u *Unit) {
	v := u.watch()
	if v.holder.count() > 0 && v.heldCheckAt == 0 && v.phase == watchRunning {
		v.heldCheckAt = w.pool.clock() + int64(heldEvery)
		u.wakeAt(v.heldCheckAt)
	}
}
