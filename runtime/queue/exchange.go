package queue

import (
	"sync/atomic"
	"unsafe"
)

// sparesMax bounds the drained segments that wait for the producer: as many as
// a queue at its capacity consists of.
const sparesMax = segmentsPerCapacity + 1

// exchange hands drained segments back from the consumer to the producer, which
// takes them all at once.
type exchange[T any] struct {
	_      [0]func()      // not compared: without it the compiler makes a function for that
	shared unsafe.Pointer // *segment[T]; an atomic.Pointer has five functions for each T
	_      [8]byte
	own    *segment[T] // the producer's
}

// put hands s back; the consumer calls it.
func (x *exchange[T]) put(s *segment[T]) {
	for {
		top := (*segment[T])(atomic.LoadPointer(&x.shared))
		s.next, s.depth = top, 1
		if top != nil {
			if s.depth = top.depth + 1; s.depth > sparesMax {
				s.next = nil
				return // the collector's
			}
		}
		if atomic.CompareAndSwapPointer(&x.shared, unsafe.Pointer(top), unsafe.Pointer(s)) {
			return
		}
	}
}

// take returns a segment of n messages, or nil; the producer calls it.
func (x *exchange[T]) take(n int) *segment[T] {
	if x.own == nil {
		if atomic.LoadPointer(&x.shared) == nil {
			return nil
		}
		x.own = (*segment[T])(atomic.SwapPointer(&x.shared, nil))
	}
	s := x.own
	x.own, s.next = s.next, nil
	if len(s.buf) != n {
		x.own = nil // smaller ones, from before the queue grew
		return nil
	}
	return s
}
