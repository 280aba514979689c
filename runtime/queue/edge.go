package queue

import (
	"reflect"
	"unsafe"
)

const (
	segmentMin      = 8 // messages in the first segment, or fewer with segmentBytesMin; an edge with few messages stays small
	segmentBytesMin = 128
	segmentMax      = 512      // messages; longer segments are not faster
	segmentBytesMax = 32 << 10 // fits into the first-level cache of common processors
	// A queue at its capacity may have two partly used segments. With this number of
	// segments for a capacity, they are at most an eighth of it.
	segmentsPerCapacity = 16
)

// Edge is an unbounded queue with one producer and one consumer at a time. The zero
// value must be initialized with Init. Put and Publish belong to the producer, Peek and
// Release to the consumer. Which goroutines these are may change if the change is
// synchronized.
//
// The queue is a list of segments. Empty segments go back to the producer, so a steady
// flow allocates nothing. Nothing is allocated before the first message. A segment is
// cleared when all its messages are handled, and not when the queue becomes empty: if two
// instances send one message back and forth, the queue is empty after each message, and the
// receiver would write to memory that otherwise only the sender writes to.
//
// Edge has no methods, and its list does not depend on T. So the compiler generates
// little code for each T, which matters because a program has an Edge for each edge of
// its topology.
type Edge[T any] struct {
	Head Head
	buf  []T // the producer's segment, set by list; a []T so that Put is inlined
	list list
}

// list is the part of an Edge that holds its messages.
type list struct {
	_ [0]func() // not comparable: otherwise the compiler generates an equality function for each T

	// Owned by the producer.
	buf  *slice // Edge.buf, the messages of the last segment
	last *segment

	messages reflect.Type // type of the slices

	// first is the segment to which the consumer goes if it has none, and firstAt the position of the next message
	// in it. The producer sets them with its first segment and in Trim, the consumer in Leave.
	first *segment

	// Owned by the consumer.
	in      slice    // messages of the current segment
	seg     *segment // nil before the first message, and after Leave
	spare   exchange
	firstAt int
}

// slice is the header of a []T. Only Edge knows T.
type slice struct {
	data     unsafe.Pointer
	len, cap int
}

type segment struct {
	next     *segment // set before a message of the next segment is published
	depth    int      // length of the list of spare segments that begins here
	messages reflect.Value
}

func (s *segment) slice() slice {
	n := s.messages.Len()
	return slice{s.messages.UnsafePointer(), n, n}
}

// Init initializes an empty queue, a *Edge or *Latest, of the edge with the given
// index, and returns its head. It must be called once, before the queue is used. It is
// not a method, because the compiler would generate a method for each type of messages.
func Init(queue any, index, capacity int, to Listener) *Head {
	v := reflect.ValueOf(queue)
	h := (*Head)(v.UnsafePointer()) // Head is the first field
	h.Init(index, capacity, to)
	if messages, ok := v.Type().Elem().FieldByName("buf"); ok {
		e := (*Edge[byte])(v.UnsafePointer()) // the layout does not depend on T
		e.list.buf = (*slice)(unsafe.Pointer(&e.buf))
		e.list.messages = messages.Type
		h.list = &e.list
	}
	return h
}

// Offer appends m, or counts m as dropped if the queue is full.
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
	h.restart()
	l.last, *l.buf = s, s.slice()
	return n
}

// segmentLen doubles the previous length, from the minimum up to the limits. size is the
// size of a message in bytes.
func segmentLen(size uintptr, before int, capacity uint64) int {
	least, most := segmentMin, segmentMax
	if size > 0 {
		least = min(least, max(1, segmentBytesMin/int(size)))
		most = min(most, max(1, segmentBytesMax/int(size)))
	}
	most = int(min(uint64(most), max(capacity/segmentsPerCapacity, min(capacity, segmentMin))))
	return min(max(2*before, least), max(most, 1))
}

// Peek returns visible messages, at most n and possibly fewer than there are. They stay
// in the queue until Head.Release, and the slice is valid until then. Peek is short so
// that the compiler inlines it.
func Peek[T any](e *Edge[T], n int) []T {
	avail := int(e.Head.published.Load() - e.Head.get)
	if avail > 0 && e.Head.at == e.list.in.len {
		e.Head.advance()
	}
	in := (*(*[]T)(unsafe.Pointer(&e.list.in)))[e.Head.at:]
	return in[:min(len(in), avail, n)]
}

// advance goes on to the next segment and returns the empty segment to the producer.
func (h *Head) advance() {
	l := h.list
	if l.seg == nil {
		l.seg, h.at = l.first, l.firstAt
		l.first, l.firstAt = nil, 0
		if l.in = l.seg.slice(); h.at < l.in.len {
			return
		}
	}
	old := l.seg
	l.seg = old.next
	old.messages.Clear() // so that the segment does not keep alive what its messages point to
	old.next = nil
	l.spare.put(old)
	l.in, h.at = l.seg.slice(), 0
}
