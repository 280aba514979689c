package fsm

import "github.com/topogen/topogen/runtime/internal/backlog"

// AppliedUpdate tells a processor that an update was applied on this node, whichever node
// has proposed it. It is sent along the edges `ledger -> audit: LedgerApplied` of the file.
// Updates that returned an error have changed nothing and are not told.
//
// In one run of a program the updates of an instance are told once each, in the order of
// the log. All whose index is above Since and below this one's were told before. Updates up
// to Since may be missing: a snapshot held them, with which the node began or which the
// leader has sent, or the receivers were so slow that the limit of waiting updates was
// reached. A receiver that has to know everything reads the state where Since is not below
// the index of the update that it was told before.
//
// After a restart Since is the index of the newest snapshot on the disk, and the updates
// behind it are told again.
type AppliedUpdate[U, R any] struct {
	Entry           // where the update is in the log, and its time; in memory only Index
	Term     uint64 // of the log's entry; 0 in memory
	Instance int    // of the machine
	Since    uint64 // updates up to this index may be missing
	Update   U      // in memory a copy by the update's method Clone, where it has one; else what it points to is only to be read
	Value    R      // what Update has returned; in memory what it points to is only to be read
}

// Leadership tells a processor who leads the group of a machine, as far as this node
// knows: others may know of a later term. It is sent along the edges
// `ledger -> audit: LedgerLeadership` of the file when the node hears of a leader, of another
// one, of another term of it, or of none any more. Where leaders change faster than
// receivers handle it, only the newest is told; Term shows it. A leader that has just
// been elected may not have applied yet what others have acknowledged: Read waits for that.
//
// A machine in memory, or on one disk alone, leads itself, and tells so once.
type Leadership struct {
	Instance int    // of the machine
	Term     uint64 // in one run of a program never less than before; 1 in memory
	Leader   string // name of the node; "": none is known
	ID       uint64 // of that member; 0: none is known
	Here     bool   // this node leads
}

// Listener hears what becomes of a [Replicated], from the goroutine that calls it.
type Listener interface {
	// Applied is called for each update that was applied, and not where it had been applied
	// before. update is valid during the call.
	Applied(e Entry, term uint64, update []byte, value string)
	// Restored is called where the state is that of a snapshot, up to an index.
	Restored(index uint64)
}

// Listen has l hear what becomes of r from now on.
func (r *Replicated[S, U, R]) Listen(l Listener) { r.listener = l }

// events are what a [Processor] tells other processors. It belongs to whoever holds the
// processor's lock.
type events[U, R any] struct {
	instance      int
	applied       func(AppliedUpdate[U, R]) error // nil: no processor hears of it
	leadership    func(Leadership)                // nil: no processor hears of it
	leadershipDue bool                            // is to be told
	waiting       backlog.List[AppliedUpdate[U, R]]
	sending       []backlog.Item[AppliedUpdate[U, R]] // a turn's, used again
}

// TellApplied has send called, in turns of the instance, for each update that is applied.
// Generated code calls it before Start. send returns an error where a queue is full.
func (p *Processor[S, U, R]) TellApplied(instance int, send func(AppliedUpdate[U, R]) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events.instance, p.events.applied = instance, send
}

// TellLeadership has send called, in a turn of the instance, when it has started.
// Generated code calls it before Start.
func (p *Processor[S, U, R]) TellLeadership(instance int, send func(Leadership)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events.instance, p.events.leadership, p.events.leadershipDue = instance, send, true
}

// Finish tells the rest. Generated code calls it when nothing comes any more.
func (p *Processor[S, U, R]) Finish() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.events.send() {
	}
	return nil
}

// alone is the name of the only node.
const alone = "alone"

// copied is the update before it is applied; nil: no processor hears of it.
func (e *events[U, R]) copyUpdate(update *U) *U {
	if e.applied == nil {
		return nil
	}
	return &clones([]U{*update})[0]
}

// put takes an update that was applied.
func (e *events[U, R]) put(index uint64, update *U, value R) {
	e.waiting.Put(index, 0, AppliedUpdate[U, R]{Entry: Entry{Index: index}, Instance: e.instance, Update: *update, Value: value})
}

// send tells what waits: as much as a turn should. It reports whether that was all.
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
