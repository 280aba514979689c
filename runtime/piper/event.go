package piper

import (
	"slices"
	"sync"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// EventKind is what became of an input.
type EventKind uint8

const (
	EventClosed    EventKind = iota // nothing more will come along an edge
	EventRestarted                  // an instance of a processor that sends to this one was made anew
)

// Event is something that became of an input of an instance.
type Event struct {
	Kind  EventKind
	Index int // of the edge that is closed, or of the processor that was restarted
}

// eventBox holds the events that an instance has not yet been told of. Others put
// them in; none is lost.
type eventBox struct {
	mu   sync.Mutex
	list []pendingEvent

	// The unit's.
	alarmAt       int64 // when its Alarm is due
	afterMessages bool  // some of list wait for messages to be handled first
}

// pendingEvent is an event that is to be told so many times: who is made anew all
// the time must not fill the memory of one that is late.
type pendingEvent struct {
	Event
	times int
}

// eventsPerTurn bounds how many events are told before messages are handled again.
const eventsPerTurn = 16

// post puts an event into the unit's box. That an edge is closed is there once.
func (u *Unit) post(e Event) {
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

// takeEvent takes out the first event that the unit can be told of now. That an
// edge is closed comes after its last message. More: there are others.
func (u *Unit) takeEvent() (e Event, ok, more bool) {
	b := &u.proc.boxes[u.index]
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.list, func(e pendingEvent) bool {
		return e.Kind != EventClosed || u.isDrained(e.Index) || bug.On(bug.ClosedTooEarly)
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

// drainedFrom reports whether no message of an edge waits.
func (u *Unit) isDrained(edge int) bool {
	if w := u.watch(); w != nil && w.retrying.Load() > 0 { // of whatever edge
		return false
	}
	for l := u.inlinks.Load(); l != nil; l = l.nextIn {
		for _, h := range l.heads {
			if h.Index() == edge && !h.Empty() {
				return false
			}
		}
	}
	return true
}

// Waits reports whether a message of the edge waits for the instance: its sender
// is not silent, the instance is late.
func (u *Unit) Waits(edge int) bool { return !u.isDrained(edge) }

// closeOutputs tells who receives along the edges that closed picks that nothing
// more will come.
func (p *Pool) closeOutputs(closed func(e *edge) bool) {
	for i := range p.edges {
		e := &p.edges[i]
		if e.From < 0 || !closed(e) || p.processors[e.To].boxes == nil {
			continue
		}
		e.closed.Store(true)
		for _, u := range p.processors[e.To].units {
			u.post(Event{EventClosed, i})
		}
	}
}

// tellClosed tells an instance that was made anew which edges are closed: the one
// before was told, it was not.
func (p *Pool) postClosed(u *Unit) {
	if u.proc.boxes == nil {
		return
	}
	for i := range p.edges {
		if e := &p.edges[i]; e.To == u.proc.index && e.closed.Load() {
			u.post(Event{EventClosed, i})
		}
	}
}

// tellRestarted tells who receives from a processor that one of its instances was
// made anew: each instance once.
func (p *Pool) postRestarted(proc *processor) {
	told := make(map[int]bool)
	for i := range p.edges {
		e := &p.edges[i]
		if e.From != proc.index || e.To == proc.index || told[e.To] || p.processors[e.To].boxes == nil {
			continue
		}
		told[e.To] = !bug.On(bug.ToldForEachEdge)
		for _, u := range p.processors[e.To].units {
			u.post(Event{EventRestarted, proc.index})
		}
	}
}

// eventsLater looks again, when a link has no more messages, at what u can be told.
func (u *Unit) recheckEvents() {
	if b := &u.proc.boxes[u.index]; b.afterMessages {
		b.afterMessages = false
		u.pendingCalls |= callEvents
	}
}

// events tells u what became of its inputs.
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

// closeTimers tells the units of a group that no tick will come any more.
func (p *Pool) closeTimers(g *group) {
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
