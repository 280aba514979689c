package graph

import "time"

// EdgeProxy reads the figures of one edge: totals over all links of the edge.
type EdgeProxy[P ~int] struct {
	source Source
	edge   *Edge
	index  int
}

// From is the processor that sends, or -1 if the edge is a timer.
func (e EdgeProxy[P]) From() P { return P(e.edge.From) }

// To is the processor that receives.
func (e EdgeProxy[P]) To() P { return P(e.edge.To) }

// Message is the name of the message type in the topology file. For a timer it is
// "Tick", and for a timer named poll it is "TickPoll".
func (e EdgeProxy[P]) Message() string { return e.edge.Message }

// Len is the number of queued messages.
func (e EdgeProxy[P]) Len() int { return e.source.EdgeLen(e.index) }

// Sent counts the messages that were sent. Each of them was received, was dropped,
// or is queued.
func (e EdgeProxy[P]) Sent() uint64 { return e.source.EdgeSent(e.index) }

// Received counts the messages that were passed to handlers.
func (e EdgeProxy[P]) Received() uint64 { return e.source.EdgeReceived(e.index) }

// Dropped counts the messages that were dropped because a queue was full, or
// because the route of the edge returned no instance.
func (e EdgeProxy[P]) Dropped() uint64 { return e.source.EdgeDropped(e.index) }

// Deliver passes one queued message of the edge to its handler. It returns false
// if no message of the edge can be handled now, for example because a message of
// another edge must be handled first. It returns an error unless the topology runs under a Stepper.
func (e EdgeProxy[P]) Deliver() (bool, error) { return e.source.Deliver(e.index) }

// ProcessorProxy reads the figures of one processor.
type ProcessorProxy struct {
	source    Source
	processor *Processor
	index     int
}

// Name is the processor's name in the topology file.
func (p ProcessorProxy) Name() string { return p.processor.Name }

// Instances is the number of instances. It is 0 for an external processor.
func (p ProcessorProxy) Instances() int { return p.processor.Instances }

// Worker is the worker that runs the given instance. It is -1 if the instance runs
// in a goroutine of its own.
func (p ProcessorProxy) Worker(instance int) int { return p.source.WorkerOf(p.index, instance) }

// Busy is the time that the processor's handlers have taken. It is an estimate
// from sampled turns.
func (p ProcessorProxy) Busy() time.Duration { return p.source.BusyOf(p.index) }

// Ping calls the processor's Ping once for each instance that has not returned
// Done. It returns an error unless the topology runs under a Stepper.
func (p ProcessorProxy) Ping() error { return p.source.Ping(p.index) }
