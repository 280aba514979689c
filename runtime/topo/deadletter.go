package topo

import "time"

// DeadLetter is a message that a processor could not handle: its attempts are
// used up, or on_error says to skip it. It arrives at the processor that
// dead_letter names. The generated function DeadLetter<Edge> gives the message
// with its type.
type DeadLetter struct {
	Time      time.Time // when it was given up
	Processor string    // that could not handle it
	Instance  int
	Edge      int    // index of the edge that it came along
	Message   string // name of the message
	Attempts  int    // 0: it could not be encoded for the process of its receiver
	Err       error  // of the last attempt, or why there was none

	message any
}

// NewDeadLetter puts message into d. Generated code and tests call it.
func NewDeadLetter(d DeadLetter, message any) DeadLetter {
	d.message = message
	return d
}

// Letter returns the message of a dead letter that came along an edge; false where
// this one came along another. Generated code calls it with the edge's type.
func Letter[M any](d DeadLetter, edge int) (m M, ok bool) {
	if d.Edge != edge {
		return m, false
	}
	m, ok = d.message.(M)
	return m, ok
}
