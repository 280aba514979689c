package pool

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/topo"
)

const (
	sampleTurnsMin  = 32                     // from one turn that is timed to the next of a worker that is
	sampleTurnsMax  = 95                     // the distance is drawn, so that it is everybody's in turn
	donateNanosMin  = 5_000                  // less, and the wake-up costs more than it brings
	donateLooksMax  = 16                     // at instances of a long run queue
	longNanosMin    = 10_000                 // a turn whose clock readings are a hundredth of it
	sampleNanosMax  = 200_000                // of a turn that stands for others: a longer one had no processor for a while
	turnNanosMax    = 40_000                 // longer turns are cut: an idle worker waits for their end
	spinMax         = 100 * time.Microsecond // about what waking a thread costs on a virtual machine
	spinLooks       = 64                     // between two looks at the clock
	spinRoundsMax   = 800                    // about spinMax; a clock that stands still ends it too
	turnMessagesMin = 8                      // in a turn that is cut
	idleWaitMin     = time.Millisecond       // of a Ping that said Idle
	idleWaitExpMax  = 7                      // doubling ends at idleWaitMax
	idleWaitMax     = 100 * time.Millisecond
)

// runner is a goroutine that runs a worker. It may find, on coming back from a
// handler, that its worker was given to another goroutine; then it goes on as
// the worker of that one unit.
type runner struct {
	w      *Worker
	unit   *Unit  // whose turn it is
	link   *Link  // that it drains, nil for Ping, Finish and Serve
	epoch  uint64 // state of w while a handler runs
	inCall bool   // between enter and leave
}

// run is the life of a worker's goroutine.
func (p *Pool) run(w *Worker) {
	r := &runner{w: w}
	returned := false
	defer func() {
		if cause := recover(); !returned && (cause != nil || !r.w.vacant) {
			r.crashed(cause)
		}
		r.w.disarm()
		p.running.Done()
	}()
	r.loop()
	returned = true
}

func (r *runner) loop() {
	for {
		w := r.w
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
		if w.runq.n > 0 && w.index >= 0 && w.pool.idle.Load() > 0 {
			w.donate()
		}
		r.turn(u)
	}
}

// turn lets u handle a batch of one link's messages, or call Ping or Finish.
func (r *runner) turn(u *Unit) {
	u.queued = false
	if u.due != 0 {
		due := u.due
		u.due = 0
		if r.w.leaves(u, uint32(due)) {
			return
		}
	}
	if u.paused() {
		return // since it was queued, in its own turn; it is queued again when there is room
	}
	closing := u.closing
	if closing {
		u.proc.group.enter()
	}
	w := r.w
	w.running, r.unit = u, u
	weight := w.weigh(u)
	sampled := weight > 0 || w.struck && !w.stepped
	var began time.Time
	if sampled {
		began = time.Now()
	}
	if w.hold.Load() != 0 && !w.pool.ended.Load() {
		w.hold.Store(0)
		if w.pool.ended.Load() {
			w.hold.Or(holdYield) // it came in between
		}
	}
	pings := u.ping == pingActive
	if u.finishDue {
		r.finish(u)
	} else {
		if w.stepped {
			pings = w.pool.stepper.choose(r, u)
		} else if u.ready.first != nil {
			l := u.ready.pop()
			if w.measures {
				l.hops += int64(weight)
			}
			r.receive(u, l)
		}
		if pings && u.ping == pingActive && !u.paused() {
			r.ping(u)
		}
	}
	w = r.w // may be another one now
	var sent *Link
	if !bug.On(bug.PublishAfterHandOver) {
		sent = u.out.publish(w)
	}
	if u.out.filled.Any() {
		u.out.settle()
	}
	w.running, r.unit = nil, nil
	var took time.Duration
	if sampled {
		took = time.Since(began)
		u.adapt(took, w)
		if w.long.Load() != u.long {
			w.long.Store(u.long)
		}
		if weight > 0 {
			w.measured(u, took, weight)
		}
	}
	w.schedule(u)
	if w.struck && sampled {
		w.reconsider(u, took)
	}
	if closing {
		u.proc.group.leave(sent)
	}
	if bug.On(bug.PublishAfterHandOver) {
		u.out.publish(w)
	}
}

// weigh says how many turns the next one of u is to be timed for; 0: it is not
// timed. Long turns are all timed, which costs little beside them, since the few
// that there are in a period would make a bad sample; so is the first, which may
// be one, and so are those of an instance with a goroutine of its own, whose
// handlers are there to take long. A long turn among short ones is one in sixty.
func (w *Worker) weigh(u *Unit) (turns int32) {
	switch {
	case w.stepped:
		return 0
	case u.long || u.turnNanos == 0 || w.index < 0:
		return 1
	}
	if w.turns--; w.turns > 0 {
		return 0
	}
	turns = w.distance
	w.distance = sampleTurnsMin + rand.Int32N(sampleTurnsMax-sampleTurnsMin+1)
	w.turns = w.distance
	return turns
}

// receive drains one link.
func (r *runner) receive(u *Unit, l *Link) {
	if l.entering && u.proc.group.isFull() {
		l.nextReady, u.gated = u.gated, l
		r.w.gateUp(u)
		return
	}
	l.listed = false
	l.setLocal(r.w)
	r.link = l
	r.enter()
	more, err := u.drain(l, u.budgetOf(r.w.batch))
	if !r.leave(u) {
		l.setLocal(r.w) // the sender runs on another goroutine now
	}
	r.link = nil
	if err != nil {
		r.w.pool.fail(r.w.pool.handlerError(u, l, "Receive", err))
		return
	}
	l.tookSome(r.w)
	if more {
		l.listed = true
		u.ready.push(l)
	}
}

// drain lets u handle at most budget messages of l. It reports whether there are
// more; what is published afterwards is announced on its own.
func (u *Unit) drain(l *Link, budget int) (more bool, err error) {
	for {
		n, err := l.inlet.Drain(budget)
		budget -= n
		switch {
		case err != nil || !l.hasMore():
			return false, err
		case budget <= 0 || u.Hold():
			return true, nil
		case n == 0:
			return false, nil // a message that is visible follows one that is not yet
		}
	}
}

// ping calls Ping up to a batch of times.
func (r *runner) ping(u *Unit) {
	if u.proc.group.isFull() {
		r.w.gateUp(u)
		return
	}
	r.enter()
	n, err := u.cell.Ping(u.budgetOf(r.w.batch))
	r.leave(u)
	if err != nil {
		err = pinged(err)
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
		r.w.pool.fail(r.w.pool.handlerError(u, nil, "Ping", err))
	}
}

func (r *runner) finish(u *Unit) {
	u.finishDue = false
	r.enter()
	err := u.cell.Finish()
	r.leave(u)
	if err != nil {
		r.w.pool.fail(r.w.pool.handlerError(u, nil, "Finish", err))
	}
	u.out.publish(r.w)
	u.proc.group.finishNext()
}

// enter and leave surround the handlers of a turn: between them the worker may
// be taken from this goroutine; then leave makes it the worker of u alone and
// reports false.
func (r *runner) enter() {
	if r.w.stepped {
		return // one goroutine, and Serve's turns lie within others
	}
	r.inCall = true
	// Nobody else sets an even state, and who sees the odd one late has only seen
	// the handler start later.
	r.epoch = r.w.state.Load() + 1
	r.w.state.StoreRelease(r.epoch)
}

func (r *runner) leave(u *Unit) (kept bool) {
	r.inCall = false
	if r.w.stepped || r.w.state.CompareAndSwap(r.epoch, r.epoch+1) {
		return true
	}
	for taken := r.w; r.w == taken; r.w = u.home.Load() {
		runtime.Gosched() // who took the worker is about to say where u is at home now
	}
	r.w.running = u
	r.w.state.Store(r.w.state.Load() + 1)
	return false
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
			w.woke = true
			return
		}
	}
}

// adapt learns from the time that a turn took. Long turns are shortened to
// where a donation comes soon enough, and short ones grow to the batch again.
func (u *Unit) adapt(took time.Duration, w *Worker) {
	nanos := uint64(took)
	u.long = nanos > longNanosMin
	u.turnNanos = uint32(min((uint64(u.turnNanos)+nanos)/2+1, 1<<32-1))
	if w.index < 0 {
		return // there it takes one message a turn
	}
	budget := u.budgetOf(w.batch)
	if nanos > turnNanosMax {
		u.budget = int32(max(budget/2, turnMessagesMin))
	} else if nanos < turnNanosMax/4 {
		u.budget = int32(min(budget*2, w.batch))
	}
}

// budgetOf is how many messages u may take from one queue in a turn.
func (u *Unit) budgetOf(batch int) int {
	if u.budget == 0 {
		return batch
	}
	return min(int(u.budget), batch)
}

// handOver makes to the home of u. It is the owner's last touch of the unit.
func (w *Worker) handOver(u *Unit, to *Worker) {
	w.pool.moved(u, w, to)
	u.home.Store(to)
	if !bug.On(bug.LostInstance) {
		u.tell(controlAdopt)
	}
}

// serve runs Serve, outside the pool.
func (r *runner) serve(u *Unit) {
	p := r.w.pool
	r.unit, r.w.running = u, u
	u.out.served = true
	r.enter()
	err := u.cell.Serve(p.serveCtx)
	r.leave(u)
	u.out.served = false
	u.out.publish(r.w)
	u.out.settle()
	r.unit, r.w.running = nil, nil
	u.serving = false
	if err := p.endedServing(err); err != nil {
		p.fail(p.handlerError(u, nil, "Serve", err))
		return
	}
	u.proc.group.sourceDone()
}

// crashed turns a panic, or runtime.Goexit in a handler, into the error that
// ends Run.
func (r *runner) crashed(cause any) {
	r.w.pool.fail(r.w.pool.crashError(r, cause, debug.Stack()))
	if r.inCall {
		r.leave(r.unit)
	}
}
