package topo

import "time"

// DeadLetter is a message that a processor could not handle, because its attempts are
// used up or because on_error is skip. It is sent to the processor that the topology
// file names under dead_letter. The generated function DeadLetter<Edge> returns the
// message with its type.
type DeadLetter struct {
	Time      time.Time // when the last attempt had failed
	Processor string    // the processor that could not handle the message
	Instance  int
	Edge      int    // index of the edge of the message
	Message   string // name of the message type
	Attempts  int    // 0 if the message could not be encoded for the process of its receiver
	Err       error  // error of the last attempt, or the reason why there was no attempt

	message any
}

// NewDeadLetter returns d with the given message. Generated code and tests call it.
func NewDeadLetter(d DeadLetter, message any) DeadLetter {
	d.message = message
	return d
}

// Letter returns the message of a dead letter of the given edge. It returns false if
// the dead letter belongs to another edge. Generated code calls it with the message
// type of the edge.
func Letter[M any](d DeadLetter, edge int) (m M, ok bool) {
	if d.Edge != edge {
		return m, false
	}
	m, ok = d.message.(M)
	return m, ok
}
