package piper

import "github.com/topogen/topogen/runtime/internal/bug"

// Hand holds the message that an instance is handling, where the topology says
// what becomes of it when that fails. It is in no queue any more. Generated code
// has one for each queue; the zero value is empty.
type Hand[M any] struct {
	m        *M
	lent     *M // a copy that the handler has; one that was abandoned keeps it
	link     *Link
	edge     int32
	attempts int32
	again    bool // it is to be handled once more
}

// held is a Hand as a watch knows it.
type held interface {
	of() (edge int)
	tried() (attempts int)
	untry()
	repeat()
	renew()
	message() any
	drop(why error)
}

// Take puts a message into the hand.
func (h *Hand[M]) Take(l *Link, edge int, m M) {
	if h.m == nil {
		h.m = new(M)
	}
	*h.m, h.link, h.edge, h.attempts = m, l, int32(edge), 1
	if w := l.to.watch(); w != nil {
		w.hand = h
	}
}

// Again reports whether the message in the hand is to be handled once more.
func (h *Hand[M]) Again() bool {
	if !h.again {
		return false
	}
	h.again = false
	h.attempts++
	h.link.edge = h.edge
	u := h.link.to
	w := u.watch()
	w.hand = h
	w.repeating.Add(-1)
	if !bug.On(bug.AttemptForgotten) {
		u.proc.group.leave(nil) // its turn keeps the group from finishing now
	}
	return true
}

// Message is the message in the hand.
func (h *Hand[M]) Message() *M { return h.m }

// Copy is a copy of the message: what a handler does to it is not seen by the
// next attempt, nor in a dead letter.
func (h *Hand[M]) Copy() *M {
	if h.lent == nil {
		h.lent = new(M)
	}
	*h.lent = *h.m
	return h.lent
}

// Done empties the hand: the message was handled.
func (h *Hand[M]) Done() {
	h.clear()
	if w := h.link.to.watch(); w != nil {
		w.hand = nil
	}
}

// Discard empties the hand of an instance that has failed for good.
func (h *Hand[M]) Discard() {
	u := h.link.to
	w := u.watch()
	w.hand = nil
	if h.attempts > 1 { // it was given to the handler: that it failed there is known
		h.attempts--
		w.giveUpLast(h)
		return
	}
	u.proc.pool.edges[h.edge].discarded.Add(1)
	u.proc.faults.dropped.Add(1)
	h.drop(w.cause)
}

func (h *Hand[M]) of() int    { return int(h.edge) }
func (h *Hand[M]) tried() int { return int(h.attempts) }

// untry takes back an attempt: no handler was called.
func (h *Hand[M]) untry() { h.attempts-- }

// repeat keeps the message for the next attempt, and until then the group from
// finishing.
func (h *Hand[M]) repeat() {
	h.again = true
	if !bug.On(bug.AttemptForgotten) {
		h.link.to.proc.group.enter()
	}
}

// renew leaves what the handler was given to it.
func (h *Hand[M]) renew() {
	m := *h.m
	h.m, h.lent = &m, nil
}

func (h *Hand[M]) message() any {
	if r, ok := any(h.m).(interface{ letter() any }); ok {
		return r.letter()
	}
	return *h.m
}

// drop forgets the message. Who waits for an answer to it gets an error.
func (h *Hand[M]) drop(why error) {
	if r, ok := any(h.m).(interface{ fail(error) }); ok {
		r.fail(why)
	}
	h.clear()
}

// clear forgets what the message points to.
func (h *Hand[M]) clear() {
	var zero M
	*h.m = zero
	if h.lent != nil {
		*h.lent = zero
	}
}
