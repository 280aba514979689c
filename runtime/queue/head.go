package queue

import (
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/count"
)

// Listener is told what a producer's puts do to its queue. It is called on the
// producer's goroutine, off the fast path.
type Listener interface {
	// Touched: the first message since the last publish. False: it is not the
	// producer's turn to send, and the next message is told of as well.
	Touched(*Head) (inTurn bool)
	// Filled: the queue holds its capacity; called once until Drained.
	Filled(*Head)
	// Overfull: a full queue has grown by another segment.
	Overfull(*Head)
}

// Head is the part of a queue that does not depend on the type of its messages:
// what is counted and what is visible. Positions count messages from the first
// one: those put, those published, those taken.
type Head struct {
	// The producer's. Expose reads pos and base, on any goroutine.
	pos       uintptr     // in the current segment, of the next put
	limit     uintptr     // a put at this place takes the slow path
	nextLimit uintptr     // the limit behind the first put after a publish
	base      count.Count // messages put before the current segment
	takenSeen uint64      // the producer's copy of taken
	listener  Listener
	list      *list   // of an Edge
	end       uintptr // of the current segment
	capacity  uint64
	full      bool
	awaiting  bool // room was asked for since the queue became full
	touched   bool
	index     int32 // of the edge
	next      *Head // in a list of the producer's full queues

	published count.Count

	_ [24]byte // the consumer's fields start a cache line of their own

	// The consumer's.
	get   uint64
	taken count.Count
	at    int  // in the segment that the consumer is at, of its next message
	local bool // the producer runs on the same goroutine

	refused atomic.Uint64 // messages that were sent and not put
	evicted atomic.Uint64 // messages that were put and dropped afterwards
	// waiting is set while the producer wants to hear of room.
	waiting atomic.Bool

	_ [8]byte // and so do those of the queue
}

// Init prepares an empty queue of edge index. It is called once, before any
// other method.
func (h *Head) Init(index int, capacity int, l Listener) {
	h.index = int32(index)
	h.capacity = uint64(capacity)
	h.listener = l
}

// Index is the index of the queue's edge.
func (h *Head) Index() int { return int(h.index) }

// Capacity is the number of messages at which the queue is full.
func (h *Head) Capacity() int { return int(h.capacity) }

// put counts the messages put.
func (h *Head) putCount() uint64 { return h.base.Own() + uint64(h.pos) }

// due does what is due at limit: tell of the first message since the last
// publish, tell that the queue is full, go on to the next segment.
func (h *Head) slowPut() {
	if !h.touched {
		if !h.listener.Touched(h) {
			h.slowPutOutsideCall()
			return
		}
		h.touched = true
		if h.pos < h.nextLimit {
			h.limit = h.nextLimit
			return
		}
	}
	h.checkFull()
}

// dueLate handles a put outside a call: each such put takes the slow path. It must
// not tell that the queue is full, which only the producer may hear. The next put in
// a call finds that out.
func (h *Head) slowPutOutsideCall() {
	if h.pos == h.end {
		h.end, h.nextLimit = uintptr(h.list.grow(h)), 0
	}
	h.limit = h.pos + 1
}

// dueMore tells that the queue is full, and goes on to the next segment.
func (h *Head) checkFull() {
	// The next put fills the queue.
	put := h.putCount()
	if !h.full && put-h.takenSeen+1 >= h.capacity && h.Depth()+1 >= h.capacity {
		h.full = true
		h.listener.Filled(h)
	}
	if h.pos == h.end {
		h.end = uintptr(h.list.grow(h))
		if h.full {
			h.listener.Overfull(h)
		}
	}
	h.nextLimit = h.end
	if !h.full { // look again at the message that may fill the queue
		h.nextLimit = uintptr(min(uint64(h.end), uint64(h.pos)+h.capacity-1-(put-h.takenSeen)))
	}
	h.limit = h.nextLimit
}

// Publish makes what was put visible to the consumer; only the producer calls
// it. Local says that the consumer runs on the same goroutine.
func (h *Head) Publish(local bool) {
	h.touched = false
	h.limit = h.pos
	set(&h.published, h.putCount(), local)
}

// Depth is the number of messages that were put and not yet taken, as the
// producer sees it.
func (h *Head) Depth() uint64 {
	h.takenSeen = h.taken.Load()
	return h.putCount() - h.takenSeen
}

// Room reports whether one more message fits; only the producer calls it.
func (h *Head) Room() bool {
	return h.putCount()-h.takenSeen < h.capacity || h.Depth() < h.capacity
}

// Full reports whether the producer was told that the queue is full and has not
// yet been told of room.
func (h *Head) Full() bool { return h.full }

// Await asks the consumer to report when the queue is down to half. It returns
// false where it is already: the two sides look in opposite order, so that no
// wake-up is lost.
func (h *Head) Await() bool {
	h.waiting.Store(true)
	h.awaiting = h.Depth() > h.capacity/2 || !h.waiting.CompareAndSwap(true, false)
	return h.awaiting
}

// HasReported reports whether the consumer has reported the room that Await
// asked for; only the producer calls it.
func (h *Head) HasReported() bool { return h.awaiting && !h.waiting.Load() }

// SetLocal tells the queue whether its producer runs on the goroutine of the
// consumer, who calls it.
func (h *Head) SetLocal(local bool) {
	if h.local && !local {
		h.taken.Store(h.get)
	}
	h.local = local
}

// Drained ends the full state; only the producer calls it.
func (h *Head) Drained() {
	h.full, h.awaiting = false, false
	h.takenSeen = h.taken.Load()
	h.limit = h.pos
	h.nextLimit = h.limit
}

// IsAwaited reports whether the producer waits for room.
func (h *Head) IsAwaited() bool { return h.waiting.Load() }

// HasRoomForWaiter reports, once, that a waiting producer has room; the
// consumer calls it after it took messages.
func (h *Head) HasRoomForWaiter() bool {
	return h.waiting.Load() &&
		h.published.Load()-h.taken.Load() <= h.capacity/2 &&
		h.waiting.CompareAndSwap(true, false)
}

// lenLooks bounds how often Len looks at counts that change meanwhile.
const lenLooks = 8

// Len is the number of visible messages not yet taken. Any goroutine may ask.
func (h *Head) Len() int {
	removed := h.taken.Load() + h.evicted.Load() // first, so that the difference is never negative
	for looks := 1; ; looks++ {
		published := h.published.Load()
		again := h.taken.Load() + h.evicted.Load()
		if again == removed || looks == lenLooks {
			return max(0, int(published-removed)) // who is neither end may see the counts in another order
		}
		removed = again
	}
}

// HasMore reports whether a message is visible; only the consumer calls it.
func (h *Head) HasMore() bool {
	removed := h.get + h.evicted.Load() // first: what was evicted was published before
	return h.published.Load() != removed
}

// Empty reports whether nothing is visible to the consumer.
func (h *Head) Empty() bool { return h.Len() == 0 }

// Sent counts the messages that were sent: published, or refused.
func (h *Head) Sent() uint64 { return h.refused.Load() + h.published.Load() }

// Published counts the messages that are visible, or were.
func (h *Head) Published() uint64 { return h.published.Load() }

// Taken counts the messages that were given to handlers.
func (h *Head) Taken() uint64 { return h.taken.Load() }

// Dropped counts the messages that will never be given to a handler.
func (h *Head) Dropped() uint64 { return h.refused.Load() + h.evicted.Load() }

// Refuse counts a message that was sent and not put.
func (h *Head) Refuse() { h.refused.Add(1) }

// RefuseMany counts n messages that were sent and not put.
func (h *Head) RefuseMany(n uint64) { h.refused.Add(n) }

// Written counts the messages put. Any goroutine may ask: the messages that it is
// told of are complete.
func (h *Head) Written() uint64 {
	for {
		base := h.base.Load()
		put := base + uint64(atomic.LoadUintptr(&h.pos))
		if h.base.Load() == base { // else the producer went on to another segment
			return put
		}
	}
}

// Expose makes the first put messages visible, on any goroutine while the producer
// goes on: its own Publish never takes back what is visible.
func (h *Head) Expose(put uint64) (exposed bool) {
	for published := h.published.Load(); published < put; published = h.published.Load() {
		if h.published.CompareAndSwap(published, put) {
			return true
		}
	}
	return false
}

// Release takes the first n messages that Peek returned out of the queue.
func (h *Head) Release(n int) {
	h.at += n
	h.take(n)
}

// take counts n messages as given to handlers.
func (h *Head) take(n int) {
	h.get += uint64(n)
	set(&h.taken, h.get, h.local)
}

// set publishes a position. Where both ends of the queue run on one goroutine,
// there is no other end to be woken by a look that comes after it.
func set(c *count.Count, n uint64, local bool) {
	if local {
		c.StoreRelease(n)
		return
	}
	c.Store(n)
}

// HeadList is a list of a producer's full queues; the zero value is empty.
type HeadList struct{ first *Head }

// Push adds h, which must be in no list.
func (l *HeadList) Push(h *Head) { h.next, l.first = l.first, h }

// Any reports whether there is a queue in the list.
func (l *HeadList) Any() bool { return l.first != nil }

// Pop takes a queue out, or returns nil.
func (l *HeadList) Pop() *Head {
	h := l.first
	if h != nil {
		l.first, h.next = h.next, nil
	}
	return h
}
