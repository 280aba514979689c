package piper

import (
	"slices"
	"sync"
)

// EventKind is the kind of an Event.
type EventKind uint8

const (
	EventClosed    EventKind = iota // an edge will carry no more messages
	EventRestarted                  // an instance of a processor that sends to this one was restarted
)

// Event reports a change of an input of an instance.
type Event struct {
	Kind  EventKind
	Index int // index of the closed edge, or of the restarted processor
}

// eventBox holds the events that were not yet reported to an instance. Other goroutines
// add events. No event is lost.
type eventBox struct {
	mu   sync.Mutex
	list []pendingEvent

	// Owned by the worker of the unit.
	alarm         alarm
	afterMessages bool // some events must wait until queued messages are handled
}

// pendingEvent is an event with the number of times that it must be reported. The count
// bounds the memory if a sender is restarted often and the receiver is slow.
type pendingEvent struct {
	Event
	times int
}

// eventsPerTurn bounds how many events are reported before messages are handled again.
const eventsPerTurn = 16

// post adds an event to the unit's box. EventClosed of an edge is added only once.
func (u *Unit) post(e Event) {
	if u.remote {
		return
	}
	b := &u.proc.boxes[u.index]
	b.mu.Lock()
	if at := slices.IndexFunc(b.list, func(p pendingEvent) bool { return p.Event == e }); at < 0 {
		b.list = append(b.list, pendingEvent{e, 1})
	} else if e.Kind != EventClosed {
		b.list[at].times++
	}
	b.mu.Unlock()
	u.signal(controlEvent)
}

// takeEvent removes the first event that can be reported now. EventClosed is reported
// after the last message of the edge. More reports whether other events are left.
func (u *Unit) takeEvent() (e Event, ok, more bool) {
	b := &u.proc.boxes[u.index]
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.list, func(e pendingEvent) bool {
		return e.Kind != EventClosed || u.isDrained(e.Index)
	})
	if at < 0 {
		return e, false, len(b.list) > 0
	}
	e = b.list[at].Event
	if b.list[at].times--; b.list[at].times == 0 {
		b.list = slices.Delete(b.list, at, at+1)
	}
	return e, true, len(b.list) > 0
}

// isDrained reports whether the instance has handled all messages of an edge.
func (u *Unit) isDrained(edge int) bool {
	if u.watch().awaitsRetry() { // the edge of that message is not known
		return false
	}
	for l := u.inlinks.Load(); l != nil; l = l.nextIn.Load() {
		for _, h := range l.heads {
			if h.Index() == edge && !h.Empty() {
				return false
			}
		}
	}
	return true
}

// HasQueued reports whether the instance has a queued message of the edge. If it has, a
// missing call of the handler does not mean that the edge is silent.
func (u *Unit) HasQueued(edge int) bool { return !u.isDrained(edge) }

// events tells the receivers of messages when edges are closed and when senders are restarted.
type events struct{ pool *Pool }

// closeOutputs closes the edges for which closed returns true, and posts EventClosed to
// their receivers.
func (e *events) closeOutputs(closed func(e *edge) bool) {
	p := e.pool
	for i := range p.edges {
		e := &p.edges[i]
		if e.From < 0 || e.Durable || !closed(e) || p.processors[e.To].boxes == nil {
			continue
		}
		e.closed.Store(true)
		for _, u := range p.processors[e.To].units {
			u.post(Event{EventClosed, i})
		}
	}
}

// postClosed reports the closed edges to a restarted instance, because only the
// previous instance received these events.
func (e *events) postClosed(u *Unit) {
	p := e.pool
	if u.proc.boxes == nil {
		return
	}
	for i := range p.edges {
		if e := &p.edges[i]; e.To == u.proc.index && e.closed.Load() {
			u.post(Event{EventClosed, i})
		}
	}
}

// postRestarted reports a restarted instance of a processor to each receiving instance,
// once even if there are several edges.
func (e *events) postRestarted(proc *processor) {
	p := e.pool
	posted := make(map[int]bool)
	for i := range p.edges {
		e := &p.edges[i]
		if e.From != proc.index || e.To == proc.index || posted[e.To] || p.processors[e.To].boxes == nil {
			continue
		}
		posted[e.To] = true
		for _, u := range p.processors[e.To].units {
			u.post(Event{EventRestarted, proc.index})
		}
	}
}

// recheckEvents checks again which events can be reported, after all messages of a link
// were handled.
func (u *Unit) recheckEvents() {
	if b := &u.proc.boxes[u.index]; b.afterMessages {
		b.afterMessages = false
		u.pendingCalls |= callEvents
	}
}

// callEvents reports the events of u.
func (r *runner) callEvents(u *Unit) {
	for n := 0; n < eventsPerTurn && !u.paused(); n++ {
		e, ok, more := u.takeEvent()
		if !ok {
			u.pendingCalls &^= callEvents
			u.proc.boxes[u.index].afterMessages = more
			return
		}
		r.call(u, methodOf[e.Kind], func() error { return u.cell.Event(e) })
	}
}

var methodOf = [...]string{EventClosed: "InputClosed", EventRestarted: "ProcessorRestarted"}

// closeTimers reports to the units of a group that no more ticks will come.
func (e *events) closeTimers(g *group) {
	p := e.pool
	if !slices.ContainsFunc(g.units, func(u *Unit) bool { return u.proc.boxes != nil }) {
		return
	}
	for i := range p.edges {
		e := &p.edges[i]
		to := p.processors[e.To]
		if e.From >= 0 || to.group != g || to.boxes == nil {
			continue
		}
		e.closed.Store(true)
		for _, u := range to.units {
			u.post(Event{EventClosed, i})
		}
	}
}
