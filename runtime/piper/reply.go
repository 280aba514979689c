package piper

import (
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// An instance may produce replies in goroutines of its own, for example a node that
// waits for a disk and for other nodes. Between BeginReply and EndReply its group does
// not finish. Wake makes the pool call Woken in a turn, where the instance may send. In the same
// way the handlers of durable edges run in Woken, between BeginWork and EndWork.

// Wake makes the pool call Woken soon, in a turn of the unit. Any goroutine may call
// Wake, at any time between Init and Close. Several calls before that turn cause one
// call of Woken. If the unit may not send because a queue is full, Woken is called when
// there is room. Under a Stepper only a turn may call Wake.
func (u *Unit) Wake() { u.signal(controlWake) }

// BeginReply keeps the unit's group from finishing until EndReply was called as often
// as BeginReply. It must be called in a turn of the unit. A unit with a Watch must not
// call it, because an instance that fails could not call EndReply.
func (u *Unit) BeginReply() {
	u.proc.pendingReplies.Add(1)
	u.proc.group.beginActivity()
}

// EndReply ends one BeginReply. It must be called in a turn of the unit. The group does
// not finish before the end of this turn, so the turn may still send. EndReply panics
// if it is called more often than BeginReply.
func (u *Unit) EndReply() {
	if u.proc.pendingReplies.Add(-1) < 0 {
		panic("pool: EndReply without BeginReply")
	}
	// No check of the group is needed here: either the turn itself leaves the group
	// later, or the unit has not yet seen controlClosing and leaves then.
	u.proc.group.activity.Add(^uint64(0))
}

// BeginWork keeps the unit's group from finishing until EndWork. It returns false if the group
// finishes already, so that no handler may be called. Any goroutine may call it.
func (u *Unit) BeginWork() bool {
	g := u.proc.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase > phaseClosing {
		return false
	}
	g.beginActivity()
	return true
}

// EndWork ends a BeginWork. Any goroutine may call it.
func (u *Unit) EndWork() { u.proc.group.endActivity(nil) }

// Work runs a durable function, in Woken. Until it returns, Out.Works is true.
func (u *Unit) Work(run func()) {
	u.out.working = true
	run()
	u.out.working = false
}

// SendDeadLetter sends a message of a durable edge, whose handler has failed for the last
// time, to the processor for dead letters. It reports whether there is one. Woken must be
// running.
func (u *Unit) SendDeadLetter(edge int, message any, attempts int, err error) (sent bool) {
	p := u.proc.pool
	letter := topo.NewDeadLetter(topo.DeadLetter{
		Time: p.time(p.clock()), Processor: u.proc.Name, Instance: u.Index(),
		Edge: edge, Message: p.edges[edge].Message, Attempts: attempts, Err: err,
	}, message)
	sent = u.cell.DeadLetter(letter)
	if sent && p.stepper == nil {
		u.out.publish(nil) // the promise is rejected before this call ends, and then nothing sends the letter again
	}
	if sent && u.proc.faults != nil {
		u.proc.faults.deadLetters.Add(1)
	}
	return sent
}

// RecordFailure records the error of a handler of a durable edge. The topology continues.
func (u *Unit) RecordFailure(edge int, err error, stack []byte) {
	p := u.proc.pool
	e := p.handlerError(u, nil, "Receive", err)
	e.Edge, e.Message, e.Stack = p.edgeName(edge), p.edges[edge].Message, stack
	p.logbook.record(e)
}

// Stepped reports whether the unit runs under a Stepper. Then it must not start
// goroutines.
func (u *Unit) Stepped() bool { return u.proc.pool.stepper != nil }

// Begin calls Init of all instances if the unit runs under a Stepper that has not taken
// its first step. Any goroutine may call it.
func (u *Unit) Begin() {
	s := u.proc.pool.stepper
	if s == nil || s.begun.Load() {
		return // Init was called, or is being called by this goroutine
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
}

// Time is the current time, or the time of the Stepper's clock. Any goroutine may call
// it.
func (u *Unit) Time() time.Time {
	if p := u.proc.pool; p.stepper != nil {
		return p.time(p.clock())
	}
	return time.Now()
}

// callWoken calls Woken if the unit may send. As for Ping, no queue within its group
// may be full; otherwise many replies at the same time would exceed the limit of a
// cycle. A guest has no choice: its messages were sent already, and to hold them back
// could be a deadlock between nodes.
func (r *runner) callWoken(u *Unit) {
	if !r.mayCall(u) {
		return // the call remains pending
	}
	u.pendingCalls &^= callWoken
	if u.HasFailed() {
		_ = u.cell.Woken() // durable executions that wait for the instance: no handler is called
		return
	}
	if u.proc.group.isFull() && !u.proc.guest {
		u.wokenPending = true
		awaitRoom(u)
		return
	}
	r.call(u, "Woken", u.cell.Woken)
}
