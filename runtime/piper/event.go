package piper

import "slices"

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

// eventsPerTurn bounds how many events are reported before messages are handled again.
const eventsPerTurn = 16

// events tells the receivers of messages when edges are closed and when senders are restarted.
type events struct{ pool *Pool }

// closeOutputs closes the edges for which closed returns true, and posts EventClosed to
// their receivers.
func (e *events) closeOutputs(closed func(e *edge) bool) {
	p := e.pool
	for i := range p.edges {
		e := &p.edges[i]
		if e.From < 0 || e.Durable || !closed(e) || p.processors[e.To].inputs == nil {
			continue
		}
		e.closed.Store(true)
		for _, u := range p.processors[e.To].units {
			u.Inputs().post(Event{EventClosed, i})
		}
	}
}

// postClosed reports the closed edges to a restarted instance, because only the
// previous instance received these events.
func (e *events) postClosed(u *Unit) {
	p := e.pool
	if u.proc.inputs == nil {
		return
	}
	for i := range p.edges {
		if e := &p.edges[i]; e.To == u.proc.index && e.closed.Load() {
			u.Inputs().post(Event{EventClosed, i})
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
		if e.From != proc.index || e.To == proc.index || posted[e.To] || p.processors[e.To].inputs == nil {
			continue
		}
		posted[e.To] = true
		for _, u := range p.processors[e.To].units {
			u.Inputs().post(Event{EventRestarted, proc.index})
		}
	}
}

// callEvents reports the events of u.
func (r *runner) callEvents(u *Unit) {
	for n := 0; n < eventsPerTurn && r.mayCall(u); n++ {
		e, ok := u.Inputs().take()
		if !ok {
			u.pendingCalls &^= callEvents
			return
		}
		r.call(u, methodOf[e.Kind], func() error { return u.cell.Event(e) })
	}
}

var methodOf = [...]string{EventClosed: "InputClosed", EventRestarted: "ProcessorRestarted"}

// closeTimers reports to the units of a group that no more ticks will come.
func (e *events) closeTimers(g *group) {
	p := e.pool
	if !slices.ContainsFunc(g.units, func(u *Unit) bool { return u.proc.inputs != nil }) {
		return
	}
	for i := range p.edges {
		e := &p.edges[i]
		to := p.processors[e.To]
		if e.From >= 0 || to.group != g || to.inputs == nil {
			continue
		}
		e.closed.Store(true)
		for _, u := range to.units {
			u.Inputs().post(Event{EventClosed, i})
		}
	}
}
