package piper

import (
	"context"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// Cell is an instance as generated code makes it: a pointer to a struct. It has those
// of the following methods that its processor needs. The pool calls them on the
// goroutine of the instance's worker, unless stated otherwise.
//
//	Adopted()                                  // called after Pool.Adopt
//	Link(processor, i int)                     // makes the link to instance i of a processor and gives it to the sender
//	Init(ctx context.Context) error
//	Ping(budget int) (n int, err error)        // calls Ping at most budget times
//	Serve(ctx context.Context) error           // on a goroutine of its own
//	Finish() error
//	Closer() func() error                      // returns Close of the current value; the pool calls it on any goroutine
//	Event(e Event) error                       // reports an event of an input to the processor
//	Alarm(now time.Duration) error             // called at the time set by SetAlarm
//	Woken() error                              // called after Wake
//	Renew(ctx context.Context) (adopt func(), err error)
//	DeadLetter(d topo.DeadLetter) bool
//
// If a sender has a table of links to a processor, Link makes the table first; if i is
// negative, it makes only the table. Renew makes a new value of the processor's type,
// on any goroutine, and adopt replaces the previous value with it. DeadLetter sends a
// message that the processor could not handle to the dead_letter processor. It returns
// false if there is none.
//
// A type with all of these methods would cost a dozen functions for each processor of a
// topology, most of them empty. So the pool looks up each method when it needs it.
type Cell any

// cell calls those methods that its Cell has.
type cell struct{ of Cell }

func (c cell) Adopted() {
	if x, ok := c.of.(interface{ Adopted() }); ok {
		x.Adopted()
	}
}

func (c cell) Link(processor, i int) {
	c.of.(interface{ Link(processor, i int) }).Link(processor, i)
}

func (c cell) hasInit() bool {
	_, ok := c.of.(interface{ Init(context.Context) error })
	return ok
}

func (c cell) Init(ctx context.Context) error {
	if x, ok := c.of.(interface{ Init(context.Context) error }); ok {
		return x.Init(ctx)
	}
	return nil
}

func (c cell) Ping(budget int) (n int, err error) {
	if x, ok := c.of.(interface{ Ping(int) (int, error) }); ok {
		return x.Ping(budget)
	}
	return 0, nil
}

func (c cell) Serve(ctx context.Context) error {
	if x, ok := c.of.(interface{ Serve(context.Context) error }); ok {
		return x.Serve(ctx)
	}
	return nil
}

func (c cell) Finish() error {
	if x, ok := c.of.(interface{ Finish() error }); ok {
		return x.Finish()
	}
	return nil
}

func (c cell) Closer() func() error {
	if x, ok := c.of.(interface{ Closer() func() error }); ok {
		return x.Closer()
	}
	return nil
}

func (c cell) Event(e Event) error {
	if x, ok := c.of.(interface{ Event(Event) error }); ok {
		return x.Event(e)
	}
	return nil
}

func (c cell) Alarm(now time.Duration) error {
	if x, ok := c.of.(interface{ Alarm(time.Duration) error }); ok {
		return x.Alarm(now)
	}
	return nil
}

func (c cell) Woken() error {
	if x, ok := c.of.(interface{ Woken() error }); ok {
		return x.Woken()
	}
	return nil
}

func (c cell) Renew(ctx context.Context) (adopt func(), err error) {
	if x, ok := c.of.(interface {
		Renew(context.Context) (func(), error)
	}); ok {
		return x.Renew(ctx)
	}
	return nil, errNotRenewable
}

func (c cell) DeadLetter(d topo.DeadLetter) bool {
	x, ok := c.of.(interface{ DeadLetter(topo.DeadLetter) bool })
	return ok && x.DeadLetter(d)
}
