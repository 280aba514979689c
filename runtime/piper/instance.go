package piper

import (
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/count"
)

// Inlet is a link as its receiver sees it.
type Inlet interface {
	// Drain hands at most budget messages to handlers and returns how many. There
	// may be more.
	Drain(budget int) (n int, err error)
}

// Drain is an Inlet.
type Drain func(budget int) (n int, err error)

// Drain calls d.
func (d Drain) Drain(budget int) (n int, err error) { return d(budget) }

// control bits: what a unit is told by others, apart from messages.
const (
	controlPing    uint32 = 1 << iota // an idle Ping may be called again
	controlStop                       // Ping is not to be called again
	controlResume                     // the queues within the group have room again
	controlClosing                    // nothing more comes from outside the group
	controlFinish                     // call Finish
	controlAdopt                      // the unit was handed over to this worker
	controlSolo                       // the unit is to run outside the pool
	controlMove                       // the unit is to run on the worker that goal says
	controlTimer                      // a time that the unit waited for may have come
	controlOrder                      // the supervisor has decided something
	controlEvent                      // something became of an input
	controlWake                       // call Woken
)

type pingState uint8

const (
	pingNone   pingState = iota // has no Ping, or said Done
	pingActive                  // to be called each pass
	pingIdle                    // to be called after a message or a while
)

// Unit is the runtime's part of an instance. All but the atomics belong to the
// goroutine of the worker where it is at home.
type Unit struct {
	_            [0]func() // no instance is compared: without it the compiler makes a function for that for each type
	cell         cell
	proc         *processor
	out          *Out
	worker       atomic.Pointer[Worker]
	inlinks      atomic.Pointer[Link] // all links that lead here
	next         *Unit                // in the run queue
	ready        linkQueue            // links with messages
	gated        *Link                // entering links held back by a full group
	controlNote  note                 // noteControl
	control      atomic.Uint32
	targetWorker atomic.Int32  // a worker, for controlMove
	moves        atomic.Uint32 // times that it changed workers
	wokenPending bool          // Woken waits for room within the group
	busy         count.Count   // nanoseconds in turns, from samples
	cost         int64         // the same since the rebalancer looked, half of it forgotten each time

	pingAt          int64 // when the idle Ping is due; 0: no timer runs
	index           int32
	budget          int32  // messages in a turn, where it is less than the batch; 0 before it was measured
	turnNanos       uint32 // a recent turn's duration, sampled
	soloReturns     uint8  // times that it left the pool and came back
	idleExp         uint8  // the next idle wait is 1 ms << idleExp
	ping            pingState
	pingAtExp       uint8 // idleExp when pingAt was set
	longTurn        bool  // the next turn is timed: the last one was long, may have been, or was outside the pool
	queued          bool  // in the run queue
	closing         bool  // the group's inputs from outside are closed
	awaitsRoom      bool  // on the group's list of those that wait for room
	serving         bool  // Serve runs, or is to run
	pendingCalls    uint8 // what to call besides the handlers of messages
	deferredControl uint8 // control bits that wait for its turn, where it is in the run queue
	started         bool  // Init was called and Close was not
}

// bits of Unit.asked
const (
	callFinish uint8 = 1 << iota
	callEvents       // there are some
	callAlarm        // its time has come
	callWoken        // Wake was called
	callHeld         // an instance in a process may hold less than before
)

// Index is the instance's index among those of its processor.
func (u *Unit) Index() int { return int(u.index) }

// Topology is that of the Spec. An instance asks for it when it makes a link, so it
// need not hold a pointer of its own.
func (u *Unit) Topology() any { return u.proc.pool.spec.Topology }

// Hold reports whether handlers are to pause before the next call: a queue that
// the instance sends to is full, or the worker is wanted elsewhere. Generated
// code asks before each call.
func (u *Unit) Hold() bool { return u.worker.Load().hold.Load() != 0 }

// paused reports whether a queue out of the group is full.
func (u *Unit) paused() bool { return u.out.full != 0 }

// runnable reports whether a turn would do something.
func (u *Unit) runnable() bool {
	return (u.ready.first != nil || u.pendingCalls != 0 || u.ping == pingActive && !u.awaitsRoom) && !u.paused()
}

// wakePing ends an idle Ping's wait: there is a message.
func (u *Unit) wakePing() {
	if u.ping == pingIdle {
		u.ping, u.idleExp = pingActive, 0
	}
}

// tell sets control bits and sees to it that the unit's worker looks at them.
func (u *Unit) signal(bits uint32) {
	if u.control.Or(bits) == 0 {
		u.worker.Load().post(&u.controlNote)
	}
}

// linkQueue is a first-in first-out list of links.
type linkQueue struct{ first, last *Link }

func (q *linkQueue) push(l *Link) {
	l.nextReady = nil
	if q.last == nil {
		q.first = l
	} else {
		q.last.nextReady = l
	}
	q.last = l
}

func (q *linkQueue) pop() *Link {
	l := q.first
	if q.first = l.nextReady; q.first == nil {
		q.last = nil
	}
	return l
}

// popAt takes out the n-th link, for the Stepper's choice.
func (q *linkQueue) popAt(n int) *Link {
	for range n {
		q.push(q.pop())
	}
	return q.pop()
}

func (q *linkQueue) len() (n int) {
	for l := q.first; l != nil; l = l.nextReady {
		n++
	}
	return n
}

// unitQueue is a first-in first-out list of units.
type unitQueue struct {
	first, last *Unit
}

func (q *unitQueue) push(u *Unit) {
	u.next = nil
	if q.last == nil {
		q.first = u
	} else {
		q.last.next = u
	}
	q.last = u
}

func (q *unitQueue) pop() *Unit {
	u := q.first
	if u == nil {
		return nil
	}
	if q.first = u.next; q.first == nil {
		q.last = nil
	}
	return u
}

func (q *unitQueue) popAt(n int) *Unit {
	for range n {
		q.push(q.pop())
	}
	return q.pop()
}

// remove takes out u, behind which before stands; nil for the first.
func (q *unitQueue) remove(before, u *Unit) {
	if before == nil {
		q.pop()
		return
	}
	before.next, u.next = u.next, nil
	if q.last == u {
		q.last = before
	}
}

// drop takes out u, wherever it stands.
func (q *unitQueue) drop(u *Unit) {
	for n := q.len(); n > 0; n-- { // the others keep their order
		if v := q.pop(); v != u {
			q.push(v)
		}
	}
}

func (q *unitQueue) len() (n int) {
	for u := q.first; u != nil; u = u.next {
		n++
	}
	return n
}
