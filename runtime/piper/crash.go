package piper

import "runtime/debug"

// handleCrash handles a panic or runtime.Goexit in a handler. Without a Watch it ends
// Run. With a Watch it ends the instance. It reports whether the worker goes on, which
// needs a new goroutine.
func (r *runner) handleCrash(cause any) (goesOn bool) {
	p := r.w.pool
	err := r.crashError(cause, debug.Stack())
	e, _ := err.(*HandlerError)
	u := r.unit
	if e == nil || u.watch() == nil || e.Method == "Finish" || p.ended.Load() {
		p.lifecycle.fail(err)
		if r.inCall {
			r.leaveOrFollow(u)
			u.out.publish(r.w) // Run has ended, but these messages were sent and must be counted
		}
		return false
	}
	r.leaveOrFollow(u)
	r.endBrokenTurn(u.watch(), e)
	return true
}

// endBrokenTurn ends the turn of a watched instance whose handler has panicked or
// called runtime.Goexit.
func (r *runner) endBrokenTurn(v *watch, e *HandlerError) {
	u := v.unit
	u.proc.pool.logbook.record(e)
	served := u.out.inServe
	if cancel := v.cancelServe.Swap(nil); cancel != nil {
		(*cancel)()
	}
	u.out.inServe = false
	v.attempts.resolve(r.link, e, ThenStop)
	if r.link != nil {
		r.link.endDrain()
		r.link.relist()
	}
	u.out.publish(r.w)
	u.out.settle()
	if number := u.proc.pool.supervision.unansweredStop(v); served && number != 0 {
		v.stopInstance(number)
	} else {
		v.reportEnd(v.isolation.failureKind(), e)
	}
	r.calling = ""
	if r.closing {
		r.closing = false
		u.proc.group.endActivity(nil)
	}
}

// isAbandoned reports whether the goroutine was abandoned before its call panicked or
// called runtime.Goexit. If it was not, it cannot be abandoned from now on.
func (r *runner) isAbandoned() bool {
	if !r.inCall || r.unit.watch() == nil {
		return false
	}
	position := r.unit.watch().sharedPosition.Load()
	if r.abandoned.Load() {
		return true // the instance may already have a new Position
	}
	return position != nil && !position.tryReturn()
}
