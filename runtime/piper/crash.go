package piper

import "runtime/debug"

// crashed turns a panic, or runtime.Goexit in a handler, into the error that
// ends Run, or into what becomes of a watched instance. It reports whether the
// worker is to go on, for which it needs another goroutine.
func (r *runner) handleCrash(cause any) (goesOn bool) {
	p := r.w.pool
	err := p.crashError(r, cause, debug.Stack())
	e, _ := err.(*HandlerError)
	u := r.unit
	if e == nil || u.watch() == nil || e.Method == "Finish" || p.ended.Load() {
		p.fail(err)
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

// survive ends the turn that a handler of a watched instance has broken off.
func (r *runner) endBrokenTurn(v *watch, e *HandlerError) {
	u := v.unit
	u.proc.pool.record(e)
	served := u.out.served
	if cancel := v.cancelServe.Swap(nil); cancel != nil {
		(*cancel)()
	}
	u.out.served = false
	v.resolveMessage(r.link, e, ThenStop)
	if r.link != nil {
		r.link.relist()
	}
	u.out.publish(r.w)
	u.out.settle()
	switch {
	case served && v.unansweredStop() != 0:
		r.w.stopChild(v, v.unansweredStop())
	default:
		v.reportEnd(v.failureKind(), e)
	}
	r.calling = ""
	if r.closing {
		r.closing = false
		u.proc.group.leave(nil)
	}
}

// isGone reports, when a call has not returned as it should, whether its goroutine
// was abandoned meanwhile. If not, it is not any more.
func (r *runner) isAbandoned() bool {
	if !r.inCall || r.unit.watch() == nil {
		return false
	}
	life := r.unit.watch().sharedLife.Load()
	if r.abandoned.Load() {
		return true // life may be another one's
	}
	return life != nil && !life.tryReturn()
}
