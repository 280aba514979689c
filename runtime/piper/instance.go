package piper

import (
	"context"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/attempt"
	"github.com/topogen/topogen/runtime/internal/count"
)

// Inlet is the receiving side of a link.
type Inlet interface {
	// Drain passes at most budget messages to handlers and returns how many. There may
	// be more.
	Drain(budget int) (n int, err error)
}

// Drain is a function that implements Inlet.
type Drain func(budget int) (n int, err error)

// Drain calls d.
func (d Drain) Drain(budget int) (n int, err error) { return d(budget) }

// control bits, which other goroutines set in a unit
const (
	controlPing    uint32 = 1 << iota // the pause of an idle Ping has passed
	controlStop                       // Ping must not be called again
	controlResume                     // the queues within the group have room again
	controlClosing                    // no more messages come from outside the group
	controlFinish                     // Finish must be called
	controlArrived                    // the unit was handed over to this worker
	controlMove                       // the unit must move to targetWorker
	controlTimer                      // a time that the unit waits for may have come
	controlCommand                    // there are commands of the supervisor
	controlEvent                      // there are events of inputs
	controlWake                       // Woken must be called
	controlSettle                     // another node has handled messages
	controlIdle                       // the links to the unit must be listed if they are idle
)

type pingState uint8

const (
	pingNone   pingState = iota // the unit has no Ping, or Ping returned Done
	pingActive                  // Ping is called in each turn
	pingIdle                    // Ping is called after a message or a pause
)

// Unit is the runtime's part of an instance. Except for the atomics, its fields belong
// to the goroutine of its worker.
type Unit struct {
	_            [0]func() // not comparable: otherwise the compiler generates an equality function for each type
	cell         cell
	proc         *processor
	out          *Out
	worker       atomic.Pointer[Worker]
	inlinks      atomic.Pointer[Link] // list of all links to the unit
	next         *Unit                // in the run queue
	ready        linkQueue            // links with queued messages
	gated        *Link                // list of entering links that are held back because the group is full
	controlNote  note                 // of kind noteControl
	control      atomic.Uint32
	targetWorker atomic.Int32  // index of the worker to move to, for controlMove
	moves        atomic.Uint32 // number of changes of the worker
	goneLinks    uint16        // number of links in inlinks that are gone
	sweepAt      uint16        // at that number they are removed from inlinks
	goneTaken    uint64        // number of messages taken from links that were removed
	busy         count.Count   // estimated nanoseconds in turns
	cost         int64         // the same for the rebalancer, halved at each of its decisions

	pingAt       int64 // when the idle Ping is due; 0 if no timer runs
	index        int32
	pace               // of its turns
	idleExp      uint8 // the next idle pause is 1 ms << idleExp
	ping         pingState
	pingAtExp    uint8 // the value of idleExp when pingAt was set
	queued       bool  // in the run queue
	closing      bool  // the inputs of the group are closed
	awaitsRoom   bool  // in group.awaitingRoom
	serving      bool  // Serve runs or must be started
	pendingCalls uint8 // call bits: methods to call, other than handlers of messages
	moveDeferred bool  // its next turn moves it to targetWorker
	started      bool  // Init has succeeded and Close was not called
	remote       bool  // another node runs the instance
	wokenPending bool  // Woken must be called when the group has room
}

// bits of Unit.pendingCalls
const (
	callFinish uint8 = 1 << iota
	callEvents       // report events
	callAlarm        // call Alarm
	callWoken        // call Woken
	callHeld         // request the number of holds from the process of the instance
)

// Index is the instance's index among those of its processor.
func (u *Unit) Index() int { return int(u.index) }

// Topology returns the Topology of the Spec. An instance calls it when it makes a link,
// so that it needs no pointer of its own.
func (u *Unit) Topology() any { return u.proc.pool.spec.Topology }

// MustYield reports whether handlers must pause before the next call, because a queue that
// the instance sends to is full or the worker is needed elsewhere. Generated code
// checks it before each call.
func (u *Unit) MustYield() bool { return u.worker.Load().yield.Load() != 0 }

// paused reports whether a queue that leads out of the group is full.
func (u *Unit) paused() bool { return u.out.full != 0 }

// runnable reports whether a turn would have work.
func (u *Unit) runnable() bool {
	return (u.ready.first != nil || u.pendingCalls != 0 || u.ping == pingActive && !u.awaitsRoom) && !u.paused()
}

// idle reports whether the unit waits for nothing but messages.
func (u *Unit) idle() bool {
	return !u.runnable() && !u.paused() && !u.closing && u.gated == nil && u.ping == pingNone
}

// stay numbers the times between two changes of u's worker. It is not 0.
func (u *Unit) stay() uint16 { return uint16(u.moves.Load()&0x7fff) + 1 }

// wakePing ends the pause of an idle Ping, because there is a message.
func (u *Unit) wakePing() {
	if u.ping == pingIdle {
		u.ping, u.idleExp = pingActive, 0
	}
}

// signal sets control bits and makes the unit's worker read them.
func (u *Unit) signal(bits uint32) {
	if u.control.Or(bits) == 0 {
		u.worker.Load().post(&u.controlNote)
	}
}

// watch returns the watch of the unit, or nil if its processor has no Watch.
func (u *Unit) watch() *watch {
	if u.proc.watches == nil {
		return nil
	}
	return u.proc.watches[u.index]
}

// Inputs returns the Inputs of the instance, or nil if its processor has no Events.
func (u *Unit) Inputs() *Inputs {
	if u.proc.inputs == nil {
		return nil
	}
	return u.proc.inputs[u.index]
}

// Isolation returns the Isolation of the instance, or nil if its processor has no Watch.
func (u *Unit) Isolation() *Isolation {
	if w := u.watch(); w != nil {
		return &w.isolation
	}
	return nil
}

// Position returns the Position of the instance, or nil if calls have no timeout.
// Generated code passes it to a new sender.
func (u *Unit) Position() *Position {
	if w := u.watch(); w != nil {
		return w.position
	}
	return nil
}

// Enter marks the start of a handler call. The caller must call Leave on the result
// afterwards.
func (u *Unit) Enter() *Position {
	l := u.Position()
	l.Enter()
	return l
}

// HasFailed reports whether the messages of the instance are discarded, because it is
// not restarted.
func (u *Unit) HasFailed() bool {
	w := u.watch()
	return w != nil && (w.phase == watchRetired || w.droppingTicks)
}

// IsFresh reports, within adopt, whether the instance needs a new sender, because an
// abandoned goroutine has the previous one. The new sender has the new Position of the
// instance, and the same Out and links, because the abandoned goroutine ends before it
// touches the Out or a link.
func (u *Unit) IsFresh() bool { return u.watch().goroutineLeft }

// Context is the context of handlers. It does not end when the topology begins to
// drain. It ends when Run stops waiting for handlers, and when the goroutine of the
// handler is abandoned.
func (u *Unit) Context() context.Context {
	w := u.watch()
	if w == nil {
		return u.proc.contexts.of(u)
	}
	ctx := w.ctx
	if ctx == nil {
		ctx = u.proc.contexts.of(u)
	}
	if n := u.Attempt(); n > 1 {
		return attempt.With(ctx, n)
	}
	return ctx
}

// Attempt is how often the current message was passed to a handler. It is 1 if there is
// no such message.
func (u *Unit) Attempt() int {
	if w := u.watch(); w != nil && w.attempts.current != nil {
		return w.attempts.current.attemptCount()
	}
	return 1
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

// popAt removes the n-th link, for the Stepper.
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

// remove removes u, whose predecessor is before; before is nil if u is the first.
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

// drop removes u from any position.
func (q *unitQueue) drop(u *Unit) {
	for n := q.len(); n > 0; n-- { // the order of the others does not change
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
