package pool

// Hand holds the message that an instance is handling, where the topology says
// what becomes of it when that fails. It is in no queue any more. Generated code
// has one for each queue; the zero value is empty.
type Hand[M any] struct {
	m        *M // a handler that was abandoned may have kept it: then it is another one's
	link     *Link
	edge     int32
	attempts int32
	again    bool // it is to be handled once more
}

// held is a Hand as a watch knows it.
type held interface {
	of() (edge int)
	tried() (attempts int)
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
	w.repeating--
	u.proc.group.leave(nil) // its turn keeps the group from finishing now
	return true
}

// Message is the message in the hand.
func (h *Hand[M]) Message() *M { return h.m }

// Copy is a copy of the message: what a handler does to it is not seen by the
// next attempt.
func (h *Hand[M]) Copy() *M {
	m := *h.m
	return &m
}

// Done empties the hand: the message was handled.
func (h *Hand[M]) Done() {
	var zero M
	*h.m = zero
	if w := h.link.to.watch(); w != nil {
		w.hand = nil
	}
}

// Discard empties the hand of an instance that has failed for good.
func (h *Hand[M]) Discard() {
	u := h.link.to
	u.proc.pool.edges[h.edge].discarded.Add(1)
	h.drop(u.watch().cause)
	u.watch().hand = nil
}

func (h *Hand[M]) of() int    { return int(h.edge) }
func (h *Hand[M]) tried() int { return int(h.attempts) }

// repeat keeps the message for the next attempt, and until then the group from
// finishing.
func (h *Hand[M]) repeat() {
	h.again = true
	h.link.to.proc.group.enter()
}

// renew leaves the message that the handler was given to it, and goes on with a
// copy.
func (h *Hand[M]) renew() { h.m = h.Copy() }

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
	var zero M
	*h.m = zero
}
