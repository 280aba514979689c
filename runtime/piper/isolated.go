package piper

import (
	"context"
	"fmt"
	"time"
)

// Refuse counts a message from outside that cannot be sent along an edge as dropped, if it
// would have been accepted otherwise. It returns err with the name of the edge.
func (x *External) Refuse(ctx context.Context, edge int, err error) error {
	if err := x.accepts(ctx); err != nil {
		return err
	}
	x.pool.edges[edge].refused.Add(1)
	return fmt.Errorf("pool: edge %s: %w", x.pool.edgeName(edge), err)
}

// refuses reports whether an error of a call means that the current message could not
// be passed to the process of the instance. Then neither a failure of the instance nor
// an attempt at the message is counted.
func (w *watch) refuses(err error) bool {
	p := w.process.Load()
	return p != nil && (*p).Refuses(err)
}

// process is the process of an isolated instance. It is nil if the instance runs in
// this process.
func (u *Unit) process() Process {
	if w := u.watch(); w != nil {
		if p := w.process.Load(); p != nil {
			return *p
		}
	}
	return nil
}

// CloseTimeout is how long Close of the unit may take.
func (u *Unit) CloseTimeout() time.Duration { return u.proc.pool.lifecycle.closeTimeout(u) }

// CountKill counts a process of the instance that was killed because its start took too
// long.
func (u *Unit) CountKill() { u.proc.faults.healthCheckKills.Add(1) }

// heldEvery is the interval at which the pool requests the number of holds from a
// process that holds work, because a goroutine there may release a hold between calls.
const heldEvery = 100 * time.Millisecond

// SetHolds sets the number of holds of an isolated instance. It must be called in a
// turn of the instance.
func (u *Unit) SetHolds(n int) {
	u.watch().holder.set(n)
	u.worker.Load().scheduleHeld(u)
}

// callHeld requests the number of holds from the process of an isolated instance.
func (r *runner) callHeld(u *Unit) {
	u.pendingCalls &^= callHeld
	p := u.process()
	if p == nil {
		return
	}
	r.call(u, "Held", func() error {
		position := u.Enter() // a process that hangs is killed, as in other calls
		err := p.Held()
		position.Leave()
		return err
	})
	r.w.scheduleHeld(u)
}

// scheduleHeld sets the time of the next callHeld for an instance that holds work.
func (w *Worker) scheduleHeld(u *Unit) {
	v := u.watch()
	if v.holder.count() > 0 && v.heldCheckAt == 0 && v.phase == watchRunning {
		v.heldCheckAt = w.pool.clock() + int64(heldEvery)
		u.proc.wakeAt(u, v.heldCheckAt)
	}
}
