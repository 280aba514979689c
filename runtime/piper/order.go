package piper

import "github.com/topogen/topogen/runtime/internal/bug"

// Order finds, among the first messages of the queues of an ordered link, the
// one that was sent first. Generated code shows it each queue's.
type Order struct {
	Edge  int    // that it travels along; -1: there is none
	N     uint64 // its number
	Until uint64 // messages of the same edge below this number come next too
}

// Order begins to look; only messages that are visible on every edge count.
func (l *Link) Order() Order {
	bound := l.Bound()
	return Order{Edge: -1, N: bound, Until: bound}
}

// See shows the number of an edge's first message.
func (o *Order) See(edge int, n uint64) {
	switch {
	case n < o.N || bug.On(bug.SequenceIgnored):
		o.Edge, o.N, o.Until = edge, n, o.N
	case n < o.Until:
		o.Until = n
	}
}

// Next is the edge of the message that was sent first, if there is one.
func (o Order) Next() (edge int, ok bool) { return o.Edge, o.Edge >= 0 }
