package fsm

import "github.com/topogen/topogen/runtime/internal/backlog"

// AppliedUpdate is the event that an update was applied on this node, whichever node
// proposed it. It is sent along the edges `ledger -> audit: LedgerApplied` of the
// topology file. There are no events for updates that returned an error, because they
// changed nothing.
//
// In one run of a program, each update of an instance causes one event, in the order of
// the log. Updates with an index above Since and below the index of this event were all
// reported before. Updates up to Since may be missing, for one of two reasons. They
// were part of a snapshot, which the node started from or received from the leader. Or
// the receivers were so slow that the limit of queued events was reached. A receiver
// that must not miss any update reads the state when Since is not below the index of
// its previous event.
//
// After a restart Since is the index of the newest snapshot on the disk, and the
// updates after the snapshot are reported again.
type AppliedUpdate[U, R any] struct {
	Entry           // the position and time of the update in the log; in memory only Index is set
	Term     uint64 // of the log's entry; 0 in memory
	Instance int    // of the state machine
	Since    uint64 // updates up to this index may be missing
	Update   U      // in memory a copy by the update's method Clone if it has one; otherwise the receiver must not change what it points to
	Value    R      // the value that Update returned; in memory the receiver must not change what it points to
}

// Leadership is the event that the leader of a state machine's group has changed, as
// far as this node knows: other nodes may know a later term. It is sent along the edges
// `ledger -> audit: LedgerLeadership` of the topology file when the node detects a new
// leader, a new term, or the loss of the leader. If leaders change faster than the
// receivers handle the events, only the newest one is sent, and Term shows the gap. A
// new leader may not have applied all updates that earlier leaders acknowledged: Read
// waits for them.
//
// A state machine in memory, or on one disk, is its own leader and sends one event.
type Leadership struct {
	Instance int    // of the state machine
	Term     uint64 // never decreases in one run of a program; 1 in memory
	Leader   string // name of the node; "": unknown
	ID       uint64 // number of this member; 0: unknown
	Here     bool   // this node leads
}

// Listener observes a [Replicated]. Its methods are called in the goroutine that calls
// the Replicated.
type Listener interface {
	// Applied is called for each update that was applied, but not for repeated
	// commands. update is valid during the call.
	Applied(e Entry, term uint64, update []byte, value string)
	// Restored is called when the state was replaced by a snapshot up to an index.
	Restored(index uint64)
}

// Listen sets the listener of r.
func (r *Replicated[S, U, R]) Listen(l Listener) { r.listener = l }

// events are the events that a [Processor] sends. The processor's lock protects them.
type events[U, R any] struct {
	instance      int
	applied       func(AppliedUpdate[U, R]) error // nil: no processor receives it
	leadership    func(Leadership)                // nil: no processor receives it
	leadershipDue bool                            // the Leadership event is not sent yet
	waiting       backlog.List[AppliedUpdate[U, R]]
	sending       []backlog.Item[AppliedUpdate[U, R]] // reused by each turn
}

// OnApplied sets the function that sends an event for each applied update. It is
// called in turns of the instance, and returns an error if a queue is full. Generated
// code calls OnApplied before Start.
func (p *Processor[S, U, R]) OnApplied(instance int, send func(AppliedUpdate[U, R]) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events.instance, p.events.applied = instance, send
}

// OnLeadership sets the function that sends the Leadership event. It is called in the
// first turn of the instance. Generated code calls OnLeadership before Start.
func (p *Processor[S, U, R]) OnLeadership(instance int, send func(Leadership)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events.instance, p.events.leadership, p.events.leadershipDue = instance, send, true
}

// Finish sends all queued events. Generated code calls it when no more messages will
// come.
func (p *Processor[S, U, R]) Finish() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.events.send() {
	}
	return nil
}

// alone is the name of the only node.
const alone = "alone"

// copyUpdate returns a copy of the update before it is applied, or nil if no processor
// receives events.
func (e *events[U, R]) copyUpdate(update *U) *U {
	if e.applied == nil {
		return nil
	}
	return &clones([]U{*update})[0]
}

// put queues the event for an applied update.
func (e *events[U, R]) put(index uint64, update *U, value R) {
	e.waiting.Put(index, 0, AppliedUpdate[U, R]{Entry: Entry{Index: index}, Instance: e.instance, Update: *update, Value: value})
}

// send sends as many queued events as fit into a turn, and reports whether that was
// all.
func (e *events[U, R]) send() (all bool) {
	if e.leadershipDue {
		e.leadershipDue = false
		e.leadership(Leadership{Instance: e.instance, Term: 1, Leader: alone, ID: 1, Here: true})
	}
	if e.applied == nil {
		return true
	}
	items, more, _ := e.waiting.Take(e.sending, backlog.PerTurn)
	for i := range items {
		m := items[i].Event
		if m.Since = items[i].Since; e.applied(m) != nil {
			e.waiting.Lose(m.Index)
		}
	}
	clear(items)
	e.sending = items
	return !more
}
