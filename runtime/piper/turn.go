package piper

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// runner is a goroutine that runs a worker. When a handler returns, the runner may find
// that its worker was taken over by another goroutine. Then it continues as the worker
// of that one instance.
type runner struct {
	w      *Worker
	unit   *Unit  // the instance whose handler runs, or ran last
	link   *Link  // the link whose messages are handled; nil for Ping, Finish and Serve
	epoch  uint64 // value of w.state while a handler runs
	inCall bool   // between enter and leave

	calling   string      // name of the method that runs, except for handlers of messages, Ping, Finish and Serve
	closing   bool        // the turn belongs to an instance of a closing group
	abandoned atomic.Bool // abandoned in a call; the worker and the unit belong to other goroutines
}

func (r *runner) loop() {
	for {
		w := r.w
		if w.sinceYield > yieldSoonNanos && (w.sinceYield > yieldNanos || w.fromOutside) {
			w.yieldCPU()
		}
		if w.pool.held.Load() {
			w.pool.calls.wait(nil) // before the notes, which may start an instance
		}
		if !w.inbox.empty() {
			w.readNotes()
		}
		if w.pool.ended.Load() {
			return
		}
		u := w.runq.pop()
		if u == nil {
			if w.solo.unit != nil && w.solo.unit.serving {
				r.serve(w.solo.unit)
				continue
			}
			if w.sharing.offers {
				w.sharing.setOffers(false)
			}
			w.park()
			w.pool.calls.look() // the process may have been stopped
			continue
		}
		if w.yield.Load() != 0 {
			w.clearYield() // before the look for idle workers: a worker that is idle after it ends the turn
		}
		if w.runq.first != nil && w.index >= 0 {
			if w.pool.idle.any() {
				w.sharing.donate()
			}
			if u.longTurn && !w.sharing.offers {
				w.sharing.setOffers(true)
			}
		} else if w.sharing.offers {
			w.sharing.setOffers(false)
		}
		r.turn(u)
	}
}

// turn handles a batch of one link's messages of u, or calls Ping or Finish.
func (r *runner) turn(u *Unit) {
	u.queued = false
	if u.moveDeferred && r.w.moveOut(u) {
		return
	}
	if u.paused() {
		return // it became paused after it was queued; it is queued again when there is room
	}
	if r.w.slow.Load() && r.w.pool.monitor.leaves(u, r.w) {
		return
	}
	r.w.sinceYield += uint64(u.turnNanos)
	turns := r.w.sampler.weight(u)
	if turns > 0 || u.closing {
		r.observedTurn(u, turns)
		return
	}
	r.act(u, 0)
	if u.runnable() {
		r.w.schedule(u)
	}
}

// observedTurn is a turn that is timed, or whose start and end the group must know
// because it is closing. A timed turn counts for the given number of turns.
func (r *runner) observedTurn(u *Unit, turns int32) {
	g, closing := u.proc.group, u.closing
	if closing {
		r.closing = true
		g.beginActivity()
	}
	var began int64
	if turns > 0 {
		began = r.w.pool.clock()
	}
	sent := r.act(u, turns)
	w := r.w // the worker may have changed
	var took time.Duration
	if turns > 0 {
		took = time.Duration(w.pool.clock() - began)
		u.adaptBudget(took, w, u.remote)
		if w.sharing.longTurn != u.longTurn && w.index >= 0 {
			w.sharing.setLong(u.longTurn)
		}
		w.costs.add(u, took, turns)
	}
	w.schedule(u)
	if turns > 0 && w.solo.hung {
		w.solo.countTurn(u, took)
	}
	if closing {
		r.closing = false
		g.endActivity(sent)
	}
}

// act does the work of a turn. Turns is the number of turns that it counts for if it is
// timed, else 0.
func (r *runner) act(u *Unit, turns int32) (sent *Link) {
	w := r.w
	pings := u.ping == pingActive
	handles := true
	if u.pendingCalls != 0 {
		pings = r.runPendingCalls(u) && pings
		handles = !u.paused() // the instance may have failed or filled a queue
		w = r.w               // the worker may have changed
		r.publishSolo(u)
	}
	switch {
	case !handles:
	case w.stepped:
		pings = w.pool.stepper.choose(r, u)
	case u.ready.first != nil:
		l := u.ready.pop()
		if turns > 0 && w.costs.measuring && l.hops < math.MaxInt32/2 {
			l.hops += turns
		}
		r.receive(u, l)
	}
	if pings && u.ping == pingActive && !u.paused() {
		r.publishSolo(u)
		r.ping(u)
	}
	sent = u.out.publish(r.w)
	if u.out.filled.Any() {
		u.out.settle()
	}
	return sent
}

// publishSolo publishes before the next call of a turn if the instance has a goroutine
// of its own, because the call may take long.
func (r *runner) publishSolo(u *Unit) {
	if r.w.index < 0 {
		u.out.publish(r.w)
	}
}

// receive handles messages of one link.
func (r *runner) receive(u *Unit, l *Link) {
	if l.entering && u.proc.group.isFull() {
		l.nextReady, u.gated = u.gated, l
		awaitRoom(u)
		return
	}
	l.listed = false
	l.setLocal(r.w)
	if l.gate != nil {
		r.w.fromOutside = true
	}
	for budget := u.budgetOf(r.w.batch); ; {
		r.enter(u, l)
		n, err := l.inlet.Drain(budget)
		if !r.leave(u) {
			r.follow(u)
			l.setLocal(r.w) // the worker has changed
		}
		if err != nil {
			r.handleError(u, l, "Receive", err)
			return
		}
		more, waited := l.rest()
		if waited {
			l.reportRoom(r.w)
		}
		if !more && !(u.MustYield() && u.watch().awaitsRetry()) { // a message for the next attempt is not in the queue
			if l.local {
				l.rewind()
			}
			if l.idleIn != u.stay() {
				r.w.idleLinks.list(l)
			}
			if u.proc.inputs != nil {
				u.Inputs().recheck()
			}
			return // later messages make the link ready again
		}
		if budget -= n; budget <= 0 || u.MustYield() {
			l.listed = true
			u.ready.push(l)
			return
		}
		if n == 0 {
			return // the next message in order is not visible yet
		}
	}
}

// ping calls Ping up to a batch of times.
func (r *runner) ping(u *Unit) {
	if u.proc.group.isFull() {
		awaitRoom(u)
		return
	}
	r.enter(u, nil)
	n, err := u.cell.Ping(u.budgetOf(r.w.batch))
	r.leaveOrFollow(u)
	if err != nil {
		err = pingResult(err)
	}
	switch {
	case err == nil || u.ping != pingActive:
		u.idleExp = 0
	case err == topo.Done:
		pingDone(u)
	case err == topo.Idle:
		if n > 0 {
			u.idleExp = 0
		}
		u.ping = pingIdle
		r.w.timers.pingLater(u)
	default:
		if r.handleError(u, nil, "Ping", err) {
			u.ping = pingIdle // so that a Ping that always fails does not keep the worker busy
			r.w.timers.pingLater(u)
		}
	}
}

// runPendingCalls makes the pending calls other than handlers of messages. It reports
// whether Ping may be called afterwards.
func (r *runner) runPendingCalls(u *Unit) (pings bool) {
	if u.pendingCalls&callFinish != 0 && u.proc.inputs != nil {
		u.pendingCalls |= callEvents // events must be reported before Finish
	}
	if u.pendingCalls&callEvents != 0 {
		r.callEvents(u)
	}
	if u.pendingCalls&callAlarm != 0 && r.mayCall(u) { // not if an event has filled a queue
		u.pendingCalls &^= callAlarm
		r.call(u, "InputClosed", func() error { return u.cell.Alarm(u.Inputs().Now()) })
	}
	if u.pendingCalls&callWoken != 0 {
		r.callWoken(u)
	}
	if u.pendingCalls&callHeld != 0 && r.mayCall(u) {
		r.callHeld(u)
	}
	if u.pendingCalls&callFinish == 0 || u.pendingCalls&callEvents != 0 || !r.mayCall(u) {
		return true
	}
	r.finish(u)
	return false
}

// mayCall reports whether another call may begin in the turn.
func (r *runner) mayCall(u *Unit) bool { return !u.paused() && !r.w.pool.held.Load() }

// call calls a method other than a handler of messages, Ping, Serve and Finish.
func (r *runner) call(u *Unit, method string, call func() error) {
	if u.paused() || u.HasFailed() {
		return
	}
	r.calling = method
	r.enter(u, nil)
	err := call()
	r.leaveOrFollow(u)
	r.calling = ""
	if err != nil {
		r.handleError(u, nil, method, err)
	}
}

func (r *runner) finish(u *Unit) {
	u.pendingCalls &^= callFinish
	if !u.HasFailed() {
		r.enter(u, nil)
		err := u.cell.Finish()
		r.leaveOrFollow(u)
		if err != nil {
			r.w.pool.lifecycle.fail(r.w.pool.handlerError(u, nil, "Finish", err))
		}
	}
	u.out.publish(r.w)
	u.proc.group.finishNext()
}

// enter marks the start of a call of user code in a turn, and leave its end. Between
// them another goroutine may take over the worker. Then leave reports false, and follow
// makes this goroutine run the new worker of u.
func (r *runner) enter(u *Unit, l *Link) {
	r.unit, r.link, r.inCall = u, l, true
	u.out.calling = true
	if r.w.stepped {
		return // there is only one goroutine, and turns of Serve are nested
	}
	// Only this goroutine changes an even state. A goroutine that reads the odd state
	// late only concludes that the handler started later.
	r.epoch = r.w.state.Load() + 1
	r.w.state.StoreRelease(r.epoch)
}

func (r *runner) leave(u *Unit) (kept bool) {
	r.inCall, u.out.calling = false, false
	return r.w.stepped || r.w.state.CompareAndSwap(r.epoch, r.epoch+1)
}

func (r *runner) leaveOrFollow(u *Unit) {
	if !r.leave(u) {
		r.follow(u)
	}
}

func (r *runner) follow(u *Unit) {
	for taken := r.w; r.w == taken; r.w = u.worker.Load() {
		runtime.Gosched() // the goroutine that took the worker is about to set the new worker of u
	}
	r.w.runner = r
	r.w.state.Store(r.w.state.Load() + 1)
}

// serve runs Serve of u, on a worker outside the pool.
func (r *runner) serve(u *Unit) {
	p := r.w.pool
	u.out.inServe = true
	r.enter(u, nil)
	err := u.cell.Serve(p.serveContext(u))
	r.leaveOrFollow(u)
	u.out.inServe = false
	u.out.publish(r.w)
	u.out.settle()
	u.serving = false
	err = p.serveFailure(err)
	if w := u.watch(); w != nil {
		w.serveEnded(err)
	} else if err != nil {
		p.lifecycle.fail(p.handlerError(u, nil, "Serve", err))
	} else {
		u.proc.group.sourceDone()
	}
}
