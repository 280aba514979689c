package pool

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
