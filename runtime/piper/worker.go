package piper

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/count"
)

// bits of Worker.yield
const (
	yieldFull  uint32 = 1 << iota // a queue that the running instance sends to became full
	yieldAsked                    // the turn takes long, or the worker must stop
)

const (
	yieldNanos     = 100_000                // in turns; then other goroutines may run, such as Serve and timers
	yieldSoonNanos = 20_000                 // the same after messages from outside, whose callers may have a reply; a yield takes less than a microsecond
	spinMax        = 100 * time.Microsecond // about the cost of waking a thread on a virtual machine
	spinLooks      = 64                     // polls of the inbox between two readings of the clock
	spinRoundsMax  = 800                    // about spinMax; ends the loop if the clock does not advance
)

// Worker runs the units that are assigned to it, one turn at a time. Except for the
// atomics, its fields belong to the goroutine that runs it.
type Worker struct {
	_      [lineBytes]byte // the object before this one may be a worker, too
	inbox  inbox
	yield  atomic.Uint32
	parked atomic.Bool
	slow   atomic.Bool     // instances may have to leave the pool, see monitor.leaves
	wake   chan struct{}   // capacity 1
	_      [lineBytes]byte // other goroutines write the fields above, the owner those below

	// Most turns use only the fields from here to sharing.
	pool        *Pool
	index       int         // -1 for a worker outside the pool, which runs one instance
	state       count.Count // odd while a handler runs; incremented at each change
	batch       int         // maximum number of messages of one link in a turn
	stepped     bool        // run by a Stepper
	fromOutside bool        // has handled messages from outside since it last yielded
	wokeAnother bool        // woke another worker since it last yielded
	sampler     sampler
	runq        unitQueue
	sinceYield  uint64  // estimated nanoseconds in turns since it last yielded
	runner      *runner // the goroutine that runs the worker
	lender      *runner // the goroutine of the worker, which sleeps, while a caller runs it
	spareRunner *runner // for the next caller that runs the worker
	yields      uint64  // how often it yielded
	sharing     sharing
	costs       costs
	timers      timers
	idleLinks   idleLinks
	solo        solo
}

func newWorker(p *Pool, index int) *Worker {
	w := &Worker{pool: p, index: index, wake: make(chan struct{}, 1)}
	w.sampler.untilNext, w.sampler.distance = 1, 1
	w.sharing.worker, w.timers.worker, w.idleLinks.worker, w.solo.worker = w, w, w, w
	w.costs.note.kind, w.timers.note.kind = notePlacement, noteTimer
	if index >= 0 {
		w.batch = p.batch
	} else {
		w.batch = 1 // its handlers may take long, so it publishes after each call
	}
	return w
}

// post adds a note to the inbox and wakes the worker if it is parked. It reports
// whether it did.
func (w *Worker) post(n *note) (woken bool) {
	w.inbox.push(n)
	return w.parked.Load() && w.wakeUp() // only one load if the worker is not parked
}

// wakeUp wakes a parked worker. If the goroutine of the worker has ended, the caller
// forwards its notes instead.
func (w *Worker) wakeUp() (woken bool) {
	if !w.parked.CompareAndSwap(true, false) {
		return false
	}
	if w.solo.exited {
		w.solo.forwardNotes()
	} else {
		w.wake <- struct{}{}
	}
	return true
}

// spin polls the inbox for a short time before the worker parks, if another worker is
// busy with long turns. Such a turn ends soon and brings messages or an instance to
// hand over, and waking a sleeping thread costs more than a turn. It reports whether the
// worker has work. It ends if a busy worker needs the CPU.
func (w *Worker) spin() bool {
	p := w.pool
	p.spinning.Add(1)
	defer p.spinning.Add(-1)
	began := time.Now()
	for rounds := 0; rounds < spinRoundsMax && time.Since(began) < spinMax; rounds++ {
		if p.busy()+int(p.spinning.Load()) > int(p.threads.Load()) {
			return false
		}
		for range spinLooks {
			if !w.inbox.empty() || p.ended.Load() {
				return true
			}
		}
	}
	return false
}

// park sleeps until there is a note. It sets parked first and then looks at the inbox
// again. A poster does these two steps in the opposite order, so no wake-up is lost.
func (w *Worker) park() {
	if w.index < 0 && w.solo.unit == nil && len(w.timers.heap) == 0 {
		w.solo.exit()
	}
	if w.wokeAnother {
		// A goroutine that was woken by this worker waits for the CPU of this thread, so
		// run it first.
		w.wokeAnother = false
		runtime.Gosched()
		if !w.inbox.empty() {
			return
		}
	}
	if w.index >= 0 && w.pool.long.anyWithout(&w.pool.idle, w) {
		w.pool.idle.add(w)
		w.sharing.ask()
		woken := w.spin()
		w.pool.idle.remove(w)
		if woken {
			w.pool.monitor.wakeUp()
			return
		}
	}
	w.parked.Store(true)
	if !w.inbox.empty() || w.pool.ended.Load() {
		if w.parked.CompareAndSwap(true, false) {
			return
		}
	} else if w.index >= 0 {
		w.pool.idle.add(w)
		w.sharing.ask()
		<-w.wake
		w.pool.idle.remove(w)
		w.pool.monitor.wakeUp()
		return
	}
	if !w.solo.hung {
		<-w.wake
		return
	}
	w.solo.waitIdle()
	w.pool.monitor.wakeUp()
}

// parkServing is park for a worker whose goroutine is in a send of Serve. It also
// returns when the topology stops.
func (w *Worker) parkServing() {
	w.parked.Store(true)
	if !w.inbox.empty() || w.pool.stopping.Load() || w.pool.ended.Load() {
		if w.parked.CompareAndSwap(true, false) {
			return
		}
	}
	<-w.wake
}

// yieldCPU lets other goroutines run, if all workers are busy or as many as there are CPUs.
// The Go scheduler would preempt the worker only after 10 ms. Otherwise other goroutines
// have a CPU without this.
func (w *Worker) yieldCPU() {
	w.sinceYield, w.fromOutside = 0, false
	w.pool.calls.look()
	if p := w.pool; w.index < 0 || p.busy() >= min(int(p.threads.Load()), len(p.workers)) {
		w.yields++
		runtime.Gosched()
	}
}

// clearYield clears the bits that the previous turn left.
func (w *Worker) clearYield() {
	if w.pool.ended.Load() || w.pool.held.Load() {
		return
	}
	w.yield.Store(0)
	if w.pool.ended.Load() || w.pool.held.Load() {
		w.yield.Or(yieldAsked) // the pool ended, or the gate was closed, between the two looks
	}
}

// readNotes processes the notes in the inbox.
func (w *Worker) readNotes() {
	for !w.inbox.empty() {
		w.readAll()
	}
}

func (w *Worker) readAll() {
	for n := w.inbox.takeAll(); n != nil; {
		next := n.next
		n.next = nil
		switch n.kind {
		case noteReady:
			w.readReady(n.link())
		case noteRoom:
			w.readRoom(n.link())
		case noteControl:
			w.readControl(n.unit())
		case noteTimer:
			w.timers.firing.Store(false)
			w.timers.fire()
		case notePlacement:
			w.costs.readPages(w)
		}
		n = next
	}
}

func (w *Worker) readReady(l *Link) {
	if home := l.to.worker.Load(); home != w {
		home.post(&l.readyNote) // the instance has moved
		return
	}
	l.posted.Store(false) // before the queues are read, so that a later message posts a new note
	if l.gone.Load() {
		w.idleLinks.removeGone(l)
		return
	}
	w.makeReady(l)
}

func (w *Worker) readRoom(l *Link) {
	if home := l.out.unit.worker.Load(); home != w {
		home.post(&l.roomNote)
		return
	}
	l.wantRoom.Store(false)
	w.roomIn(l) // first: a queue that was full is not trimmed
	if l.asked.Load() && l.asked.Swap(false) {
		w.idleLinks.trim(l)
	}
}

// makeReady puts a link on the ready list of its receiver.
func (w *Worker) makeReady(l *Link) {
	u := l.to
	if !l.listed {
		l.listed = true
		u.ready.push(l)
	}
	if u.ping != pingNone {
		u.wakePing()
		w.schedule(u)
	} else if !u.queued && !u.paused() { // schedule, inlined for a unit that is runnable
		u.queued = true
		w.runq.push(u)
	}
}

// roomIn lets the sender of l continue if all its full queues have room.
func (w *Worker) roomIn(l *Link) {
	for _, h := range l.heads {
		if h.HasReported() && !h.Await() {
			l.out.hasRoomAgain(h)
		}
	}
	w.schedule(l.out.unit)
}

// schedule puts u into the run queue if it has work.
func (w *Worker) schedule(u *Unit) {
	if u.queued || !u.runnable() {
		return
	}
	if u.ping == pingActive && u.proc.group.isFull() {
		awaitRoom(u)
		if !u.runnable() {
			return // scheduled again when there is room
		}
	}
	u.queued = true
	w.runq.push(u)
}

func (w *Worker) readControl(u *Unit) {
	if home := u.worker.Load(); home != w {
		home.post(&u.controlNote)
		return
	}
	bits := u.control.Swap(0)
	if w.stepped {
		bits = w.pool.stepper.deferWhileHung(u, bits)
	}
	if bits&controlCommand != 0 && u.proc.group.finishes {
		// Commands are carried out before the end of the inputs is read, so that after a command to
		// stop the group waits until the instance is started again. Without Finish, a new
		// instance would have nothing to do after the end of the inputs.
		u.watch().carryOut()
		bits &^= controlCommand
	}
	if bits&controlPing != 0 {
		w.timers.pingDue(u, w.pool.clock())
	}
	if bits&controlStop != 0 {
		pingDone(u)
	}
	if bits&controlResume != 0 {
		releaseGated(u)
	}
	if bits&controlClosing != 0 {
		u.closing = true
		if v := u.watch(); v != nil && v.phase != watchRunning && w.pool.stopping.Load() {
			v.dropTicks() // ticks since the topology was stopped
		}
		u.proc.group.endActivity(nil)
	}
	if bits&controlFinish != 0 {
		u.pendingCalls |= callFinish
	}
	if bits&(controlTimer|controlCommand|controlEvent|controlWake|controlSettle|controlIdle) != 0 {
		w.readRareControl(u, bits)
	}
	if bits&controlMove != 0 {
		if u.queued {
			u.moveDeferred = true // removing it from a long queue would be slow; its next turn moves it
			return
		}
		if w.moveOut(u) {
			return
		}
	}
	w.schedule(u)
}

// readRareControl processes the control bits of supervision, of Wake and of other nodes.
func (w *Worker) readRareControl(u *Unit, bits uint32) {
	if bits&controlSettle != 0 {
		w.pool.border.Settle(u)
		if u.closing { // the queues may be empty now
			u.proc.group.beginActivity()
			u.proc.group.endActivity(nil)
		}
	}
	if bits&controlIdle != 0 {
		w.idleLinks.listAll(u)
	}
	if bits&controlWake != 0 {
		u.pendingCalls |= callWoken
	}
	if bits&controlEvent != 0 {
		u.pendingCalls |= callEvents
	}
	if bits&controlCommand != 0 {
		u.watch().carryOut() // before the timer: an order that arrived before a deadline counts, even if the worker reads both late
	}
	if bits&controlTimer != 0 {
		u.proc.wakeups[u.index].fire(u)
	}
}

// moveOut hands u over to its target worker. It reports whether it did.
func (w *Worker) moveOut(u *Unit) bool {
	u.moveDeferred = false
	if w.index < 0 {
		return false
	}
	to := w.pool.workers[u.targetWorker.Load()]
	if to == w {
		return false
	}
	w.handOver(u, to)
	return true
}

// handOver assigns u to another worker. The owner must not touch u afterwards.
func (w *Worker) handOver(u *Unit, to *Worker) {
	w.pool.logbook.moved(u, w, to)
	u.worker.Store(to)
	u.signal(controlArrived)
}
