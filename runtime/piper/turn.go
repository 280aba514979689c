package piper

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/topo"
)

const (
	donateNanosMin = 5_000                  // less, and the wake-up costs more than it brings
	yieldNanos     = 100_000                // in turns, then goroutines that wait for the processor run: callers of Ask, Serve, timers
	donateLooksMax = 16                     // at instances of a long run queue
	sampleNanosMax = 200_000                // of a turn that stands for others: a longer one had no processor for a while
	spinMax        = 100 * time.Microsecond // about what waking a thread costs on a virtual machine
	spinLooks      = 64                     // between two looks at the clock
	spinRoundsMax  = 800                    // about spinMax; a clock that stands still ends it too
	idleWaitMin    = time.Millisecond       // of a Ping that said Idle
	idleWaitExpMax = 7                      // doubling ends at idleWaitMax
	idleWaitMax    = 100 * time.Millisecond
)

// runner is a goroutine that runs a worker. It may find, on coming back from a
// handler, that its worker was given to another goroutine; then it goes on as
// the worker of that one unit.
type runner struct {
	w      *Worker
	unit   *Unit  // whose handler runs, or was the last that ran
	link   *Link  // that it drains, nil for Ping, Finish and Serve
	epoch  uint64 // state of w while a handler runs
	inCall bool   // between enter and leave

	calling   string      // the method, where it is not one that handles messages, Ping, Finish or Serve
	closing   bool        // the turn of a closing group's unit
	abandoned atomic.Bool // abandoned in a call: the worker and the unit are others'
}

// run is the life of a worker's goroutine.
func (p *Pool) run(w *Worker) {
	r := &runner{w: w}
	w.runner = r
	returned := false
	defer func() {
		cause := recover()
		if !returned && r.isAbandoned() {
			p.abandonedReturned()
			return
		}
		if !returned && (cause != nil || !r.w.exited) && r.handleCrash(cause) {
			p.running.Add(1)
			go p.run(r.w)
		} else {
			r.w.disarm()
		}
		p.goroutineEnded()
	}()
	r.loop()
	returned = true
}

func (r *runner) loop() {
	for {
		w := r.w
		if w.sinceYield > yieldNanos {
			w.yieldProcessor()
		}
		if !w.inbox.empty() {
			w.readNotes()
		}
		if w.pool.ended.Load() {
			return
		}
		u := w.runq.pop()
		if u == nil {
			if w.single != nil && w.single.serving {
				r.serve(w.single)
				continue
			}
			w.park()
			continue
		}
		if w.runq.first != nil && w.index >= 0 && w.pool.idle.Load() > 0 {
			w.donate()
		}
		r.turn(u)
	}
}

// letOthersRun gives way to goroutines that wait for a processor, which the scheduler
// would take away only after 10 ms. While fewer workers are busy than there are
// processors, there is one for these goroutines.
func (w *Worker) yieldProcessor() {
	w.sinceYield = 0
	if p := w.pool; w.index < 0 || len(p.workers)-int(p.idle.Load()) >= min(p.threads, len(p.workers)) {
		w.yields++
		runtime.Gosched()
	}
}

// turn lets u handle a batch of one link's messages, or call Ping or Finish.
func (r *runner) turn(u *Unit) {
	u.queued = false
	if u.deferredControl != 0 && r.w.moveDeferred(u) {
		return
	}
	if u.paused() {
		return // since it was queued, in its own turn; it is queued again when there is room
	}
	r.w.sinceYield += uint64(u.turnNanos)
	turns := r.w.sampleWeight(u)
	if turns > 0 || u.closing {
		r.observedTurn(u, turns)
		return
	}
	r.act(u, 0)
	if u.runnable() {
		r.w.schedule(u)
	}
}

// observedTurn is a turn that is timed, if it stands for some, or that the group
// has to know of, since it is closing.
func (r *runner) observedTurn(u *Unit, turns int32) {
	g, closing := u.proc.group, u.closing
	if closing {
		r.closing = true
		g.enter()
	}
	var began int64
	if turns > 0 {
		began = r.w.pool.clock()
	}
	sent := r.act(u, turns)
	w := r.w // may be another one than before
	var took time.Duration
	if turns > 0 {
		took = time.Duration(w.pool.clock() - began)
		u.adaptBudget(took, w)
		if w.longTurn.Load() != u.longTurn {
			w.longTurn.Store(u.longTurn)
		}
		w.measured(u, took, turns)
	}
	w.schedule(u)
	if turns > 0 && w.hung {
		w.countSoloTurn(u, took)
	}
	if closing {
		r.closing = false
		g.leave(sent)
	}
	if bug.On(bug.PublishAfterHandOver) {
		u.out.publish(w)
	}
}

// act is what happens in a turn; turns is how many it is timed for.
func (r *runner) act(u *Unit, turns int32) (sent *Link) {
	w := r.w
	if w.hold.Load() != 0 {
		w.clearHold()
	}
	pings := u.ping == pingActive
	handles := true
	if u.pendingCalls != 0 {
		pings = r.runPendingCalls(u) && pings
		handles = !u.paused() // it may have failed, or filled a queue
		w = r.w               // and its worker may have been taken from it
		r.publishSolo(u)
	}
	switch {
	case !handles:
	case w.stepped:
		pings = w.pool.stepper.choose(r, u)
	case u.ready.first != nil:
		l := u.ready.pop()
		if turns > 0 && w.measuring && l.hops < math.MaxInt32/2 {
			l.hops += turns
		}
		r.receive(u, l)
	}
	if pings && u.ping == pingActive && !u.paused() {
		r.publishSolo(u)
		r.ping(u)
	}
	if !bug.On(bug.PublishAfterHandOver) {
		sent = u.out.publish(r.w)
	}
	if u.out.filled.Any() {
		u.out.settle()
	}
	return sent
}

// publishAlone publishes before the next call of a turn where that may take long.
func (r *runner) publishSolo(u *Unit) {
	if r.w.index < 0 {
		u.out.publish(r.w)
	}
}

// letGoOn ends what held the handlers of the turn before.
func (w *Worker) clearHold() {
	if w.pool.ended.Load() {
		return
	}
	w.hold.Store(0)
	if w.pool.ended.Load() {
		w.hold.Or(holdYield) // it came in between
	}
}

// receive drains one link.
func (r *runner) receive(u *Unit, l *Link) {
	if l.entering && u.proc.group.isFull() {
		l.nextReady, u.gated = u.gated, l
		r.w.awaitRoom(u)
		return
	}
	l.listed = false
	l.setLocal(r.w)
	for budget := u.budgetOf(r.w.batch); ; {
		r.enter(u, l)
		n, err := l.inlet.Drain(budget)
		if !r.leave(u) {
			r.follow(u)
			l.setLocal(r.w) // the sender runs on another goroutine now
		}
		if err != nil {
			r.handleError(u, l, "Receive", err)
			return
		}
		more, waited := l.rest()
		if waited {
			l.reportRoom(r.w)
		}
		if !more {
			if u.proc.boxes != nil {
				u.recheckEvents()
			}
			return // what is published from now on is announced on its own
		}
		if budget -= n; budget <= 0 || u.Hold() {
			l.listed = true
			u.ready.push(l)
			return
		}
		if n == 0 {
			return // what is visible follows a message that is not yet
		}
	}
}

// ping calls Ping up to a batch of times.
func (r *runner) ping(u *Unit) {
	if u.proc.group.isFull() {
		r.w.awaitRoom(u)
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
		r.w.pingDone(u)
	case err == topo.Idle:
		if n > 0 {
			u.idleExp = 0
		}
		u.ping = pingIdle
		r.w.pingLater(u)
	default:
		if r.handleError(u, nil, "Ping", err) {
			u.ping = pingIdle // so that one that always fails leaves the processor to others
			r.w.pingLater(u)
		}
	}
}

// answer calls what is asked for besides the handlers of messages. It reports
// whether Ping may be called after that.
func (r *runner) runPendingCalls(u *Unit) (pings bool) {
	if u.pendingCalls&callFinish != 0 && u.proc.boxes != nil {
		u.pendingCalls |= callEvents // none is later than Finish
	}
	if u.pendingCalls&callEvents != 0 {
		r.callEvents(u)
	}
	if u.pendingCalls&callAlarm != 0 && !u.paused() { // an event may have filled a queue: later, then
		u.pendingCalls &^= callAlarm
		r.call(u, "InputClosed", func() error { return u.cell.Alarm(u.Now()) })
	}
	if u.pendingCalls&callWoken != 0 {
		r.callWoken(u)
	}
	if u.pendingCalls&callHeld != 0 && !u.paused() {
		r.callHeld(u)
	}
	if u.pendingCalls&callFinish == 0 || u.pendingCalls&callEvents != 0 || u.paused() {
		return true
	}
	r.finish(u)
	return false
}

// call calls a method that is neither a handler of messages nor Ping, Serve or
// Finish.
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
			r.w.pool.fail(r.w.pool.handlerError(u, nil, "Finish", err))
		}
	}
	u.out.publish(r.w)
	u.proc.group.finishNext()
}

// enter and leave surround the handlers of a turn: between them the worker may
// be taken from this goroutine; then leave reports false, and follow makes it the
// worker of u alone.
func (r *runner) enter(u *Unit, l *Link) {
	r.unit, r.link, r.inCall = u, l, true
	u.out.calling = true
	if r.w.stepped {
		return // one goroutine, and Serve's turns lie within others
	}
	// Nobody else sets an even state, and who sees the odd one late has only seen
	// the handler start later.
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
		runtime.Gosched() // who took the worker is about to say where u is at home now
	}
	r.w.runner = r
	r.w.state.Store(r.w.state.Load() + 1)
}

// donate hands one unit that is ready to a worker that has nothing to do, where
// its turns are long enough to pay for the wake-up.
func (w *Worker) donate() {
	if w.pool.pinned {
		return
	}
	var before *Unit
	u := w.runq.first
	for looks := 0; u != nil && u.turnNanos < donateNanosMin; before, u = u, u.next {
		if looks++; looks == donateLooksMax {
			return
		}
	}
	if u == nil {
		return
	}
	for _, to := range w.pool.workers {
		if to != w && (to.parked.Load() || to.spinning.Load()) {
			w.runq.remove(before, u)
			u.queued = false
			w.handOver(u, to)
			w.wokeAnother = true
			return
		}
	}
}

// handOver makes to the home of u. It is the owner's last touch of the unit.
func (w *Worker) handOver(u *Unit, to *Worker) {
	w.pool.moved(u, w, to)
	u.worker.Store(to)
	if !bug.On(bug.LostInstance) {
		u.signal(controlAdopt)
	}
}

// serve runs Serve, outside the pool.
func (r *runner) serve(u *Unit) {
	p := r.w.pool
	u.out.served = true
	r.enter(u, nil)
	err := u.cell.Serve(p.serveContext(u))
	r.leaveOrFollow(u)
	u.out.served = false
	u.out.publish(r.w)
	u.out.settle()
	u.serving = false
	err = p.serveFailure(err)
	if w := u.watch(); w != nil {
		w.served(r.w, err)
	} else if err != nil {
		p.fail(p.handlerError(u, nil, "Serve", err))
	} else {
		u.proc.group.sourceDone()
	}
}
