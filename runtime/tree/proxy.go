package tree

import "time"

// EdgeProxy is one edge of a tree, over all pairs of instances that it joins.
type EdgeProxy[P ~int] struct {
	source Source
	arc    *Arc
	index  int
}

// From is the processor that sends; -1 for a timer.
func (e EdgeProxy[P]) From() P { return P(e.arc.From) }

// To is the processor that receives.
func (e EdgeProxy[P]) To() P { return P(e.arc.To) }

// Message is the message's name in the file; "Tick" for a timer, "TickPoll" for one called poll.
func (e EdgeProxy[P]) Message() string { return e.arc.Message }

// Len is the number of messages that wait.
func (e EdgeProxy[P]) Len() int { return e.source.EdgeLen(e.index) }

// Sent counts the messages that were sent: received, dropped, or waiting.
func (e EdgeProxy[P]) Sent() uint64 { return e.source.EdgeSent(e.index) }

// Received counts the messages that were given to handlers.
func (e EdgeProxy[P]) Received() uint64 { return e.source.EdgeReceived(e.index) }

// Dropped counts the messages that a full queue, or a route to no instance, has
// cost.
func (e EdgeProxy[P]) Dropped() uint64 { return e.source.EdgeDropped(e.index) }

// Deliver hands one waiting message to its handler, where one is next in its
// order, and reports whether there was one. It acts under a Stepper alone.
func (e EdgeProxy[P]) Deliver() (bool, error) { return e.source.Deliver(e.index) }

// ProcessorProxy is one processor of a tree.
type ProcessorProxy struct {
	source Source
	node   *Node
	index  int
}

// Name is the processor's name in the file.
func (p ProcessorProxy) Name() string { return p.node.Name }

// Instances is the number of its instances; 0 for an external processor.
func (p ProcessorProxy) Instances() int { return p.node.Instances }

// Worker is the worker that an instance runs on; -1 for a goroutine of its own.
func (p ProcessorProxy) Worker(instance int) int { return p.source.WorkerOf(p.index, instance) }

// Busy is the time that the processor's handlers have taken, estimated from
// sampled turns.
func (p ProcessorProxy) Busy() time.Duration { return p.source.BusyOf(p.index) }

// Ping calls the processor's Ping once for each instance that has not said
// Done. It acts under a Stepper alone.
func (p ProcessorProxy) Ping() error { return p.source.Ping(p.index) }
