package queue

import "sync/atomic"

// sparesMax bounds the number of spare segments: as many as a queue at its capacity
// has.
const sparesMax = segmentsPerCapacity + 1

// exchange returns empty segments from the consumer to the producer. The producer takes
// all of them at once.
type exchange struct {
	shared atomic.Pointer[segment]
	_      [8]byte
	own    *segment // owned by the producer
}

// put returns s to the producer. The consumer calls it.
func (x *exchange) put(s *segment) {
	for {
		top := x.shared.Load()
		s.next, s.depth = top, 1
		if top != nil {
			if s.depth = top.depth + 1; s.depth > sparesMax {
				s.next = nil
				return // left to the garbage collector
			}
		}
		if x.shared.CompareAndSwap(top, s) {
			return
		}
	}
}

// take returns a segment of n messages, or nil. The producer calls it.
func (x *exchange) take(n int) *segment {
	if x.own == nil && x.shared.Load() != nil {
		maybeYield()
		x.own = x.shared.Swap(nil) // nil if the consumer has just dropped them
	}
	s := x.own
	if s == nil {
		return nil
	}
	x.own, s.next = s.next, nil
	if s.messages.Len() != n {
		x.own = nil // shorter segments, from before the queue grew
		return nil
	}
	return s
}
