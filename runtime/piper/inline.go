package piper

// A goroutine that asks an idle instance handles its request itself, as if it were the
// goroutine of the worker: the wake-ups of the worker and of the caller cost much more than
// a short handler. It does so only if it would wait for the reply without a limit,
// because a context cannot end a handler that runs on the caller's goroutine. It stops after
// its own reply: a handler of a further request may wait for something that the caller does
// after Ask.

// inlineTurnsMax is how many turns a caller runs at most, for requests that came before its own.
const inlineTurnsMax = 4

// asking is a call without its type parameter.
type asking interface{ replied() bool }

// borrow makes the caller the owner of a parked worker that has nothing to do. The goroutine
// of the worker sleeps until giveBack.
func (w *Worker) borrow() bool {
	return w.parked.Load() && w.inbox.empty() && !w.pool.held.Load() && w.parked.CompareAndSwap(true, false)
}

// giveBack returns a worker to its goroutine. Like park, it looks at the inbox after it has set
// parked: a note that was posted before has woken no goroutine.
func (w *Worker) giveBack() {
	if w.runq.first == nil {
		w.parked.Store(true)
		if w.inbox.empty() && !w.pool.ended.Load() || !w.parked.CompareAndSwap(true, false) {
			return
		}
	}
	w.wake <- struct{}{}
}

// turnsInline runs turns of u, which is the only unit in the run queue of the worker.
func (r *runner) turnsInline(u *Unit, c asking) {
	w, returned := r.w, false
	defer func() {
		if !returned {
			r.handleCrash(recover())
		}
		if r.w != w {
			go r.w.pool.run(r.w) // the worker was taken away during a long call, which takeWorker has counted
			return
		}
		w.runner, w.lender, w.spareRunner = w.lender, nil, r
		w.giveBack()
	}()
	for range inlineTurnsMax {
		w.runq.pop()
		if w.yield.Load() != 0 {
			w.clearYield() // as in loop: an idle worker may have asked before w was parked
		}
		budget := u.budget
		u.budget = 1
		r.turn(u)
		if u.worker.Load() != r.w {
			break // u has moved
		}
		u.budget = budget
		if r.w != w || w.runq.first != u || c.replied() {
			break
		}
	}
	returned = true
}
