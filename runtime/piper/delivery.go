package piper

// Delivery holds the message that an instance is handling, if the processor has a Watch.
// The message has been removed from its queue. Generated code has a Delivery for each
// queue. The zero value is empty.
type Delivery[M any] struct {
	message     *M
	handlerCopy *M // the copy that was passed to the handler; an abandoned handler keeps it
	link        *Link
	edge        int32
	attempts    int32
	retry       bool // the message will be handled again
}

// untypedDelivery is a Delivery without its type parameter.
type untypedDelivery interface {
	edgeIndex() (edge int)
	attemptCount() (attempts int)
	uncountAttempt()
	keepForRetry()
	detach()
	content() any
	drop(why error)
}

// Take sets the current message, for its first attempt.
func (d *Delivery[M]) Take(l *Link, edge int, m M) {
	if d.message == nil {
		d.message = new(M)
	}
	*d.message, d.link, d.edge, d.attempts = m, l, int32(edge), 1
	if c := crossingOf(l); c != nil {
		c.Took()
	}
	if w := l.to.watch(); w != nil {
		w.attempts.current = d
	}
}

// Again reports whether the current message must be handled again, and begins the next
// attempt.
func (d *Delivery[M]) Again() bool {
	if !d.retry {
		return false
	}
	d.retry = false
	d.attempts++
	d.link.edge = d.edge
	u := d.link.to
	w := u.watch()
	w.attempts.current = d
	w.attempts.waiting.Add(-1)
	u.proc.group.endActivity(nil) // from here on, the turn keeps the group from finishing
	return true
}

// Message returns the current message.
func (d *Delivery[M]) Message() *M { return d.message }

// Copy returns a copy of the message for the handler. Changes that the handler makes
// affect neither the next attempt nor a dead letter.
func (d *Delivery[M]) Copy() *M {
	if d.handlerCopy == nil {
		d.handlerCopy = new(M)
	}
	*d.handlerCopy = *d.message
	return d.handlerCopy
}

// Done clears the delivery after the message was handled.
func (d *Delivery[M]) Done() {
	d.clear()
	if w := d.link.to.watch(); w != nil {
		w.attempts.current = nil
	}
}

// Discard drops the current message of an instance that is not restarted.
func (d *Delivery[M]) Discard() {
	u := d.link.to
	w := u.watch()
	w.attempts.current = nil
	if d.attempts > 1 { // the handler has already failed with this message
		d.attempts--
		w.attempts.reject(d, &HandlerError{Err: w.cause})
		w.scheduleCloseOutputs()
		return
	}
	if !d.link.arrives() { // otherwise the sending node counts it as received
		u.proc.pool.edges[d.edge].discarded.Add(1)
	}
	u.proc.faults.dropped.Add(1)
	d.drop(w.cause)
}

// Enveloped is implemented by elements of queues that wrap a message, such as a Request.
type Enveloped interface{ Envelope() Envelope }

// Envelope describes such an element.
type Envelope struct {
	Message any             // as a dead letter shows it
	Fail    func(why error) // makes the call that waits for a reply to the message return an error
}

func (d *Delivery[M]) edgeIndex() int    { return int(d.edge) }
func (d *Delivery[M]) attemptCount() int { return int(d.attempts) }

// uncountAttempt takes back an attempt in which no handler was called.
func (d *Delivery[M]) uncountAttempt() { d.attempts-- }

// keepForRetry keeps the message for the next attempt. Until then the group does not
// finish.
func (d *Delivery[M]) keepForRetry() {
	d.retry = true
	d.link.to.proc.group.beginActivity()
}

// detach leaves the current message and copy to an abandoned handler, and continues
// with new ones.
func (d *Delivery[M]) detach() {
	m := *d.message
	d.message, d.handlerCopy = &m, nil
}

func (d *Delivery[M]) content() any {
	if e, ok := any(d.message).(Enveloped); ok {
		return e.Envelope().Message
	}
	return *d.message
}

// drop clears the delivery. If a caller waits for a reply to the message, it gets an
// error.
func (d *Delivery[M]) drop(why error) {
	if e, ok := any(d.message).(Enveloped); ok {
		e.Envelope().Fail(why)
	}
	d.clear()
}

// clear zeroes the message, so that the garbage collector can free what it points to.
func (d *Delivery[M]) clear() {
	if c := crossingOf(d.link); c != nil {
		c.Resolved()
	}
	var zero M
	*d.message = zero
	if d.handlerCopy != nil {
		*d.handlerCopy = zero
	}
}
