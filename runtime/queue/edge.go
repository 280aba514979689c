package queue

import (
	"reflect"
	"unsafe"
)

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
//
// Edge has no methods, and its list does not depend on T: so the compiler makes little
// for each T, and a program has an Edge for each edge of its topology.
type Edge[T any] struct {
	Head Head
	buf  []T // the producer's segment, which list sets: Put is inlined with a []T only
	list list
}

// list is the part of an Edge that holds its messages.
type list struct {
	_ [0]func() // not compared: without it the compiler makes a function for that for each T

	// The producer's.
	buf   *slice // Edge.buf, of the last segment
	last  *segment
	first *segment // set before the first publish

	messages reflect.Type // of the slices

	// The consumer's.
	in    slice // of the segment that it is at
	seg   *segment
	spare exchange
}

// slice is a []T. Only Edge knows T.
type slice struct {
	data     unsafe.Pointer
	len, cap int
}

type segment struct {
	next     *segment // set before a message behind this segment is published
	depth    int      // of the list of spares below it
	messages reflect.Value
}

func (s *segment) slice() slice {
	n := s.messages.Len()
	return slice{s.messages.UnsafePointer(), n, n}
}

// Init prepares an empty queue, a *Edge or *Latest, of edge index, and returns its head.
// It is called once, before the queue's methods. It is no method, which the compiler
// would make for each type of messages.
func Init(queue any, index, capacity int, to Listener) *Head {
	v := reflect.ValueOf(queue)
	h := (*Head)(v.UnsafePointer()) // the first field
	h.Init(index, capacity, to)
	if messages, ok := v.Type().Elem().FieldByName("buf"); ok {
		e := (*Edge[byte])(v.UnsafePointer()) // T changes the layout of none
		e.list.buf = (*slice)(unsafe.Pointer(&e.buf))
		e.list.messages = messages.Type
		h.list = &e.list
	}
	return h
}

// Offer appends m unless the queue is full; then m counts as dropped.
func Offer[T any](e *Edge[T], m T) {
	if !e.Head.Room() {
		e.Head.Refuse()
		return
	}
	Put(e, m)
}

// grow appends a segment and returns its length.
func (l *list) grow(h *Head) int {
	n := segmentLen(l.messages.Elem().Size(), l.buf.len, h.capacity)
	s := l.spare.take(n)
	if s == nil {
		s = &segment{messages: reflect.MakeSlice(l.messages, n, n)}
	}
	if l.last == nil {
		l.first = s
	} else {
		l.last.next = s
	}
	put := h.putCount()
	h.setPos(0) // first: who reads both sees no more than was put
	h.base.StoreRelease(put)
	l.last, *l.buf = s, s.slice()
	return n
}

// segmentLen doubles from segmentMin to the limits; size is that of a message.
func segmentLen(size uintptr, before int, capacity uint64) int {
	most := segmentMax
	if size > 0 {
		most = min(most, max(1, segmentBytesMax/int(size)))
	}
	most = int(min(uint64(most), max(capacity/segmentsPerCapacity, min(capacity, segmentMin))))
	return min(max(2*before, segmentMin), max(most, 1))
}

// Peek returns visible messages, at most n and perhaps fewer than there are.
// They stay in the queue until Head.Release; the slice is valid until then. It is
// as small as it is so that it is inlined.
func Peek[T any](e *Edge[T], n int) []T {
	avail := int(e.Head.published.Load() - e.Head.get)
	if avail > 0 && e.Head.at == e.list.in.len {
		e.Head.advance()
	}
	in := (*(*[]T)(unsafe.Pointer(&e.list.in)))[e.Head.at:]
	return in[:min(len(in), avail, n)]
}

// advance goes on to the next segment and hands the drained one back.
func (h *Head) advance() {
	l := h.list
	old := l.seg
	if old == nil {
		l.seg = l.first
	} else {
		l.seg = old.next
		old.messages.Clear() // what messages point at must not live on here
		old.next = nil
		l.spare.put(old)
	}
	l.in, h.at = l.seg.slice(), 0
}
