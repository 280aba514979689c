package piper

import "github.com/topogen/topogen/runtime/internal/bug"

// Hand holds the message that an instance is handling, if the processor has a Watch.
// The message has been removed from its queue. Generated code has a Hand for each
// queue. The zero value is empty.
type Hand[M any] struct {
	message     *M
	handlerCopy *M // the copy that was passed to the handler; an abandoned handler keeps it
	link        *Link
	edge        int32
	attempts    int32
	retry       bool // the message will be handled again
}

// delivery is a Hand without its type parameter.
type delivery interface {
	edgeIndex() (edge int)
	attemptCount() (attempts int)
	uncountAttempt()
	keepForRetry()
	detach()
	content() any
	drop(why error)
}

// Take puts a message into the hand, for its first attempt.
func (h *Hand[M]) Take(l *Link, edge int, m M) {
	if h.message == nil {
		h.message = new(M)
	}
	*h.message, h.link, h.edge, h.attempts = m, l, int32(edge), 1
	if w := l.to.watch(); w != nil {
		w.current = h
	}
}

// Again reports whether the message in the hand must be handled again, and begins the
// next attempt.
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
		u.proc.group.leave(nil) // from here on, the turn keeps the group from finishing
	}
	return true
}

// Message returns the message in the hand.
func (h *Hand[M]) Message() *M { return h.message }

// Copy returns a copy of the message for the handler. Changes that the handler makes
// affect neither the next attempt nor a dead letter.
func (h *Hand[M]) Copy() *M {
	if h.handlerCopy == nil {
		h.handlerCopy = new(M)
	}
	*h.handlerCopy = *h.message
	return h.handlerCopy
}

// Done empties the hand after the message was handled.
func (h *Hand[M]) Done() {
	h.clear()
	if w := h.link.to.watch(); w != nil {
		w.current = nil
	}
}

// Discard empties the hand of an instance that is not restarted.
func (h *Hand[M]) Discard() {
	u := h.link.to
	w := u.watch()
	w.current = nil
	if h.attempts > 1 { // the handler has already failed with this message
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

// uncountAttempt takes back an attempt in which no handler was called.
func (h *Hand[M]) uncountAttempt() { h.attempts-- }

// keepForRetry keeps the message for the next attempt. Until then the group does not
// finish.
func (h *Hand[M]) keepForRetry() {
	h.retry = true
	if !bug.On(bug.AttemptForgotten) {
		h.link.to.proc.group.enter()
	}
}

// detach leaves the current message and copy to an abandoned handler, and continues
// with new ones.
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

// drop empties the hand. If a caller waits for a reply to the message, it gets an
// error.
func (h *Hand[M]) drop(why error) {
	if r, ok := any(h.message).(interface{ fail(error) }); ok {
		r.fail(why)
	}
	h.clear()
}

// clear zeroes the message, so that the garbage collector can free what it points to.
func (h *Hand[M]) clear() {
	var zero M
	*h.message = zero
	if h.handlerCopy != nil {
		*h.handlerCopy = zero
	}
}
