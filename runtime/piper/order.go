package piper

// Order finds the message that was sent first among the first messages of the queues of
// an ordered link. Generated code calls Add for each queue.
type Order struct {
	Edge  int    // edge of the message; -1 if there is none
	N     uint64 // number of the message
	Until uint64 // messages of the same edge with numbers below this one come next as well
}

// Add adds the number of the first message of an edge.
func (o *Order) Add(edge int, n uint64) {
	switch {
	case n < o.N:
		o.Edge, o.N, o.Until = edge, n, o.N
	case n < o.Until:
		o.Until = n
	}
}

// Next is the edge of the message that was sent first. It returns false if there is
// none.
func (o Order) Next() (edge int, ok bool) { return o.Edge, o.Edge >= 0 }
