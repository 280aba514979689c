package piper

import "github.com/topogen/topogen/runtime/internal/bug"

// Hand holds the message that an instance is handling, where the topology says
// what becomes of it when that fails. It is in no queue any more. Generated code
// has one for each queue; the zero value is empty.
type Hand[M any] struct {
	message     *M
	handlerCopy *M // a copy that the handler has; one that was abandoned keeps it
	link        *Link
	edge        int32
	attempts    int32
	retry       bool // it is to be handled once more
}

// held is a Hand as a watch knows it.
type delivery interface {
	edgeIndex() (edge int)
	attemptCount() (attempts int)
	uncountAttempt()
	keepForRetry()
	detach()
	content() any
	drop(why error)
}

// Take puts a message into the hand.
func (h *Hand[M]) Take(l *Link, edge int, m M) {
	if h.message == nil {
		h.message = new(M)
	}
	*h.message, h.link, h.edge, h.attempts = m, l, int32(edge), 1
	if w := l.to.watch(); w != nil {
		w.current = h
	}
}

// Again reports whether the message in the hand is to be handled once more.
func (h *Hand[M]) Again() bool {
	if !h.retry {
		return false
	}
	h.retry = false
	h.attempts++
	h.link.edge = h.edge
	u := h.link.to
	w := u.watch()
	w.current = h
	w.retrying.Add(-1)
	if !bug.On(bug.AttemptForgotten) {
		u.proc.group.leave(nil) // its turn keeps the group from finishing now
	}
	return true
}

// Message is the message in the hand.
func (h *Hand[M]) Message() *M { return h.message }

// Copy is a copy of the message: what a handler does to it is not seen by the
// next attempt, nor in a dead letter.
func (h *Hand[M]) Copy() *M {
	if h.handlerCopy == nil {
		h.handlerCopy = new(M)
	}
	*h.handlerCopy = *h.message
	return h.handlerCopy
}

// Done empties the hand: the message was handled.
func (h *Hand[M]) Done() {
	h.clear()
	if w := h.link.to.watch(); w != nil {
		w.current = nil
	}
}

// Discard empties the hand of an instance that has failed for good.
func (h *Hand[M]) Discard() {
	u := h.link.to
	w := u.watch()
	w.current = nil
	if h.attempts > 1 { // it was given to the handler: that it failed there is known
		h.attempts--
		w.rejectRetried(h)
		return
	}
	u.proc.pool.edges[h.edge].discarded.Add(1)
	u.proc.faults.dropped.Add(1)
	h.drop(w.cause)
}

func (h *Hand[M]) edgeIndex() int    { return int(h.edge) }
func (h *Hand[M]) attemptCount() int { return int(h.attempts) }

// untry takes back an attempt: no handler was called.
func (h *Hand[M]) uncountAttempt() { h.attempts-- }

// repeat keeps the message for the next attempt, and until then the group from
// finishing.
func (h *Hand[M]) keepForRetry() {
	h.retry = true
	if !bug.On(bug.AttemptForgotten) {
		h.link.to.proc.group.enter()
	}
}

// renew leaves what the handler was given to it.
func (h *Hand[M]) detach() {
	m := *h.message
	h.message, h.handlerCopy = &m, nil
}

func (h *Hand[M]) content() any {
	if r, ok := any(h.message).(interface{ letter() any }); ok {
		return r.letter()
	}
	return *h.message
}

// drop forgets the message. Who waits for an answer to it gets an error.
func (h *Hand[M]) drop(why error) {
	if r, ok := any(h.message).(interface{ fail(error) }); ok {
		r.fail(why)
	}
	h.clear()
}

// clear forgets what the message points to.
func (h *Hand[M]) clear() {
	var zero M
	*h.message = zero
	if h.handlerCopy != nil {
		*h.handlerCopy = zero
	}
}
