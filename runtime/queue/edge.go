package queue

import "unsafe"

const (
	segmentMin      = 8        // messages in a first segment: a quiet edge stays small
	segmentMax      = 512      // messages: beyond it a longer segment is no faster
	segmentBytesMax = 32 << 10 // stays in the first-level cache of common processors
	// A queue at its capacity may hold two part-used segments; at this many
	// segments a capacity they stay within an eighth of it.
	segmentsPerCapacity = 16
)

// Edge is an unbounded queue with one producer and one consumer at a time. The
// zero value needs Init. Put and Publish belong to the producer, Peek and
// Release to the consumer; which goroutines these are may change where the
// change is synchronized.
//
// The queue is a list of segments. Drained segments go back to the producer, so
// a steady flow allocates nothing, and nothing is allocated before the first
// message.
type Edge[T any] struct {
	Head  Head
	buf   []T // the producer's segment
	last  *segment[T]
	first *segment[T] // set before the first publish

	_ [16]byte

	in    []T // the consumer's segment
	at    int // in it, of the next message
	seg   *segment[T]
	spare exchange[T]
}

type segment[T any] struct {
	next  *segment[T] // set before a message behind this segment is published
	depth int         // of the list of spares below it
	buf   []T
}

// Init prepares an empty queue of edge index. It is called once, before any
// other method.
func (e *Edge[T]) Init(index int, capacity int, l Listener) {
	e.Head.Init(index, capacity, l)
	e.Head.list = e
}

// Offer appends m unless the queue is full; then m counts as dropped.
func (e *Edge[T]) Offer(m T) {
	if !e.Head.Room() {
		e.Head.Refuse()
		return
	}
	e.Put(m)
}

// grow appends a segment and returns its length.
func (e *Edge[T]) grow() int {
	n := segmentLen[T](len(e.buf), e.Head.capacity)
	s := e.spare.take(n)
	if s == nil {
		s = &segment[T]{buf: make([]T, n)}
	}
	if e.last == nil {
		e.first = s
	} else {
		e.last.next = s
	}
	put := e.Head.put()
	e.Head.setPos(0) // first: who reads both sees no more than was put
	e.Head.base.StoreRelease(put)
	e.last, e.buf = s, s.buf
	return len(s.buf)
}

// segmentLen doubles from segmentMin to the limits.
func segmentLen[T any](before int, capacity uint64) int {
	most := segmentMax
	if size := int(unsafe.Sizeof(*new(T))); size > 0 {
		most = min(most, max(1, segmentBytesMax/size))
	}
	most = int(min(uint64(most), max(capacity/segmentsPerCapacity, min(capacity, segmentMin))))
	return min(max(2*before, segmentMin), max(most, 1))
}

// Peek returns visible messages, at most n and perhaps fewer than there are.
// They stay in the queue until Release; the slice is valid until then. It is as
// small as it is so that it is inlined.
func (e *Edge[T]) Peek(n int) []T {
	avail := int(e.Head.published.Load() - e.Head.get)
	if avail > 0 && e.at == len(e.in) {
		e.Head.list.advance()
	}
	in := e.in[e.at:]
	return in[:min(len(in), avail, n)]
}

// First returns the oldest visible message, which must exist.
func (e *Edge[T]) First() *T {
	if e.at == len(e.in) {
		e.advance()
	}
	return &e.in[e.at]
}

// advance goes on to the next segment and hands the drained one back.
func (e *Edge[T]) advance() {
	old := e.seg
	if old == nil {
		e.seg = e.first
	} else {
		e.seg = old.next
		clear(old.buf) // what messages point at must not live on here
		old.next = nil
		e.spare.put(old)
	}
	e.in, e.at = e.seg.buf, 0
}

// Release takes the first n peeked messages out of the queue.
func (e *Edge[T]) Release(n int) {
	e.at += n
	e.Head.take(n)
}
