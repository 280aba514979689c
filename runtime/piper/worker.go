package piper

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/internal/count"
)

// bits of Worker.hold
const (
	holdFull  uint32 = 1 << iota // a queue of the running unit became full
	holdYield                    // the turn takes long, or the worker is to stop
)

// Worker runs the units that are at home with it, one turn at a time. Its
// fields belong to the goroutine that runs it, but for the atomics.
type Worker struct {
	pool  *Pool
	index int // -1: outside the pool, for one unit

	inbox    inbox
	hold     atomic.Uint32
	state    count.Count // odd while a handler runs; counts its way up
	parked   atomic.Bool
	longTurn atomic.Bool   // the last turn that was timed was a long one
	spinning atomic.Bool   // looks for a note before it parks
	wake     chan struct{} // holds one token
	_        [64]byte      // others write above, the owner below

	batch           int  // messages that a turn may take from one queue
	stepped         bool // by a Stepper
	runq            unitQueue
	timers          timerHeap
	timer           *time.Timer
	armedAt         int64 // when the Go timer fires, 0 for never
	timerNote       note
	firing          atomic.Bool // timed is in the inbox
	wokeAnother     bool        // another worker, since it last gave way
	runner          *runner     // whose goroutine it is
	sinceYield      uint64      // nanoseconds in turns since it last let others run, estimated
	yields          uint64      // times that it let others run
	turnsToSample   int32       // until one is timed
	sampleDistance  int32       // turns between the one that was timed and that one
	measuring       bool        // the costs of instances and links, for the rebalancer
	variance        float64     // of the sum of the costs measured here
	epoch           uint64      // of the rebalancer's pages
	placementNote   note
	placementPosted atomic.Bool // pages is in the inbox
	single          *Unit       // the only unit of a worker outside the pool
	hung            bool        // single is here because a handler hung
	quickTurns      int         // turns in a row since
	slowTurns       int         // long turns since
	exited          bool        // single has gone back, and the goroutine has ended
}

func newWorker(p *Pool, index int) *Worker {
	w := &Worker{pool: p, index: index, wake: make(chan struct{}, 1)}
	w.timerNote = note{kind: noteTimer}
	w.placementNote = note{kind: notePlacement}
	w.turnsToSample, w.sampleDistance = 1, 1
	if index >= 0 {
		w.batch = p.batch
	} else {
		w.batch = 1 // its handlers may take long: publish after each
	}
	return w
}

// post hands a note to the worker and wakes it if need be; it reports whether
// it did.
func (w *Worker) post(n *note) (woken bool) {
	w.inbox.push(n)
	return w.parked.Load() && w.wakeUp() // one load where it does not sleep
}

// rouse ends the worker's sleep. Where its goroutine has ended, the caller does
// what that would have done.
func (w *Worker) wakeUp() (woken bool) {
	if !w.parked.CompareAndSwap(true, false) {
		return false
	}
	if w.exited {
		w.forwardNotes()
	} else {
		w.wake <- struct{}{}
	}
	return true
}

// spin waits a little for a note before the worker sleeps, where another one is
// busy with long turns: these end soon, with messages or with an instance to
// hand over, and waking a sleeping thread costs more than a turn.
func (w *Worker) spin() bool {
	began := time.Now()
	for rounds := 0; rounds < spinRoundsMax && time.Since(began) < spinMax; rounds++ {
		for range spinLooks {
			if !w.inbox.empty() || w.pool.ended.Load() {
				return true
			}
		}
	}
	return false
}

// longTurns reports whether another worker is busy with long turns.
func (p *Pool) longTurns(self *Worker) bool {
	for _, w := range p.workers {
		if w != self && w.longTurn.Load() && !w.parked.Load() {
			return true
		}
	}
	return false
}

// park sleeps until there is a note. Intent first, then another look: whoever
// posts does these in the opposite order, so no wake-up is lost.
func (w *Worker) park() {
	if w.index < 0 && w.single == nil && len(w.timers) == 0 {
		w.exit()
	}
	if w.wokeAnother {
		// A goroutine that was woken from here stands in line behind this one.
		w.wokeAnother = false
		runtime.Gosched()
		if !w.inbox.empty() {
			return
		}
	}
	if w.index >= 0 && w.pool.longTurns(w) {
		w.spinning.Store(true)
		w.pool.idle.Add(1)
		woken := w.spin()
		w.pool.idle.Add(-1)
		w.spinning.Store(false)
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
		w.pool.idle.Add(1)
		<-w.wake
		w.pool.idle.Add(-1)
		w.pool.monitor.wakeUp()
		return
	}
	<-w.wake
}

// readNotes does what the inbox says.
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
			w.readReady(n.link)
		case noteRoom:
			w.readRoom(n.link)
		case noteControl:
			w.readControl(n.unit)
		case noteTimer:
			w.firing.Store(false)
			w.fireTimers()
		case notePlacement:
			w.readPlacement()
		}
		n = next
	}
}

func (w *Worker) readReady(l *Link) {
	if home := l.to.worker.Load(); home != w {
		if !bug.On(bug.OldWorkerWoken) {
			home.post(&l.readyNote) // it moved
		}
		return
	}
	l.posted.Store(false) // before the queues are looked at
	w.makeReady(l)
}

func (w *Worker) readRoom(l *Link) {
	if home := l.out.unit.worker.Load(); home != w {
		home.post(&l.roomNote)
		return
	}
	l.wantRoom.Store(false)
	w.roomIn(l)
}

// makeReady puts a link on its receiver's ready list.
func (w *Worker) makeReady(l *Link) {
	u := l.to
	if !l.listed {
		l.listed = true
		u.ready.push(l)
	}
	if u.ping != pingNone {
		u.wakePing()
		w.schedule(u)
	} else if !u.queued && !u.paused() { // schedule, of what is ready
		u.queued = true
		w.runq.push(u)
	}
}

// roomIn lets the sender of l go on where all its full queues have room.
func (w *Worker) roomIn(l *Link) {
	for _, h := range l.heads {
		if h.HasReported() && !h.Await() {
			l.out.drained(h)
		}
	}
	w.schedule(l.out.unit)
}

// schedule puts u into the run queue where a turn would do something.
func (w *Worker) schedule(u *Unit) {
	if u.queued || !u.runnable() {
		return
	}
	if u.ping == pingActive && u.proc.group.isFull() {
		w.awaitRoom(u)
		if !u.runnable() {
			return // told of room later
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
	if bits&controlPing != 0 {
		w.pingDue(u)
	}
	if bits&controlStop != 0 {
		w.pingDone(u)
	}
	if bits&controlResume != 0 {
		w.releaseGated(u)
	}
	if bits&controlClosing != 0 {
		u.closing = true
		if v := u.watch(); v != nil && v.phase != watchRunning && w.pool.stopping.Load() {
			v.dropTicks() // that came since it was stopped
		}
		u.proc.group.leave(nil)
	}
	if bits&controlFinish != 0 {
		u.pendingCalls |= callFinish
	}
	if bits&(controlTimer|controlOrder|controlEvent|controlWake) != 0 {
		w.readRareControl(u, bits)
	}
	if due := bits & (controlSolo | controlMove); due != 0 {
		if u.queued {
			u.deferredControl |= uint8(due) // it may stand anywhere in a long queue
			return
		}
		if w.moveOut(u, due) {
			return
		}
	}
	w.schedule(u)
}

// readRareControl does what control bits of supervision say, and of Wake.
func (w *Worker) readRareControl(u *Unit, bits uint32) {
	if bits&controlWake != 0 {
		u.pendingCalls |= callWoken
	}
	if bits&controlEvent != 0 {
		u.pendingCalls |= callEvents
	}
	if bits&controlOrder != 0 {
		w.carryOutOrders(u) // first: what is there is not late, although the worker is
	}
	if bits&controlTimer != 0 {
		w.handleWakeup(u)
	}
}

// leavesDue does what was due while u stood in the run queue.
func (w *Worker) moveDeferred(u *Unit) bool {
	due := u.deferredControl
	u.deferredControl = 0
	return w.moveOut(u, uint32(due))
}

// leaves hands u over where control bits say so. It reports whether it did.
func (w *Worker) moveOut(u *Unit, due uint32) bool {
	if w.index < 0 {
		return false
	}
	if due&controlSolo != 0 {
		w.pool.moveToSolo(w, u)
		return true
	}
	to := w.pool.workers[u.targetWorker.Load()]
	if to == w {
		return false
	}
	w.handOver(u, to)
	return !bug.On(bug.OldOwner)
}

// ungate makes the links ready again that a full group held back.
func (w *Worker) releaseGated(u *Unit) {
	u.awaitsRoom = false
	if u.wokenPending {
		u.wokenPending = false
		u.pendingCalls |= callWoken
	}
	for l := u.gated; l != nil; l = u.gated {
		u.gated = l.nextReady
		u.ready.push(l)
	}
}

// gateUp keeps what enters u's group waiting until the group has room.
func (w *Worker) awaitRoom(u *Unit) {
	if u.awaitsRoom {
		return
	}
	u.awaitsRoom = true
	if !u.proc.group.await(u) {
		w.releaseGated(u)
	}
}

// pingDone ends u's Ping for good.
func (w *Worker) pingDone(u *Unit) {
	if v := u.watch(); v != nil {
		v.pingDone()
	} else if u.ping != pingNone {
		u.ping = pingNone
		u.proc.group.sourceDone()
	}
}
