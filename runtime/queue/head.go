package queue

import (
	"math"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/internal/count"
)

// Listener is called when a put changes the state of a queue. It is called on the
// producer's goroutine, outside of the fast path.
type Listener interface {
	// Touched reports the first message since the last publish. It returns false if the
	// message was sent outside of a handler call. In this case Touched is called for
	// the next message, too.
	Touched(*Head) (inTurn bool)
	// Filled reports that the queue has reached its capacity. It is called once until
	// Drained.
	Filled(*Head)
	// Overfull reports that a full queue has grown by another segment.
	Overfull(*Head)
}

// Head is the part of a queue that does not depend on the type of its messages: the
// numbers of messages that were put, published and taken since the queue was made.
type Head struct {
	// Owned by the producer. Other goroutines may read pos and base.
	pos       uintptr     // position of the next put in the current segment
	limit     uintptr     // a put at this position takes the slow path
	nextLimit uintptr     // the limit after the first put that follows a publish
	base      count.Count // number of messages put before the current segment
	takenSeen uint64      // the producer's copy of taken
	listener  Listener
	list      *list   // for an Edge
	end       uintptr // length of the current segment
	capacity  uint64
	room      uint64 // number of messages at which Room is false and a Latest drops; the capacity unless KeepAll was called
	full      bool
	awaiting  bool // Await was called since the queue became full
	touched   bool
	index     int32 // index of the edge
	next      *Head // next in a HeadList

	published count.Count

	_ [16]byte // the consumer's fields begin in a new cache line

	// Owned by the consumer.
	get     uint64
	taken   count.Count
	at      int           // position of the next message in the consumer's segment
	local   bool          // the producer runs on the same goroutine
	waiting atomic.Bool   // set while the producer waits for a report of room
	refused atomic.Uint64 // number of messages that were sent but not put
	evicted atomic.Uint64 // number of messages that were put and dropped later
	left    atomic.Uint64 // number of messages put before the consumer called Leave
	pending uint64        // messages that Pass has removed and Settle has not counted yet; owned by the consumer
}

// Init initializes the head of an empty queue, of the edge with the given index. It
// must be called once, before any other method.
func (h *Head) Init(index int, capacity int, l Listener) {
	h.index = int32(index)
	h.capacity, h.room = uint64(capacity), uint64(capacity)
	h.listener = l
}

// KeepAll makes Room true also at the capacity, and a Latest drop nothing. Filled is called
// as before. KeepAll must be called before the first message.
func (h *Head) KeepAll() { h.room = math.MaxUint64 }

// Index is the index of the queue's edge.
func (h *Head) Index() int { return int(h.index) }

// Capacity is the number of messages at which the queue is full.
func (h *Head) Capacity() int { return int(h.capacity) }

// putCount is the number of messages put.
func (h *Head) putCount() uint64 { return h.base.Own() + uint64(h.pos) }

// slowPut is called before a put at limit. It reports the first message since the last
// publish, reports that the queue is full, and goes on to the next segment.
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

// slowPutOutsideCall prepares a put outside of a handler call. Each such put takes the
// slow path. It must not report that the queue is full, because only the producer may
// get that report. The next put in a call reports it.
func (h *Head) slowPutOutsideCall() {
	if h.pos == h.end {
		h.end, h.nextLimit = uintptr(h.list.grow(h)), 0
	}
	h.limit = h.pos + 1
}

// checkFull reports that the queue is full, and goes on to the next segment.
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
	if !h.full { // check again at the message that may fill the queue
		h.nextLimit = uintptr(min(uint64(h.end), uint64(h.pos)+h.capacity-1-(put-h.takenSeen)))
	}
	h.limit = h.nextLimit
}

// Publish makes the messages visible to the consumer. Only the producer calls it. local
// says that the consumer runs on the same goroutine.
func (h *Head) Publish(local bool) {
	h.touched = false
	h.limit = h.pos
	set(&h.published, h.putCount(), local)
}

// PublishShared is Publish for a producer that many goroutines share, and reports whether there
// are new messages. Further puts do not call Touched. Reads of the caller that follow may take
// effect before the messages are visible.
func (h *Head) PublishShared() (put bool) {
	if h.list == nil { // a Latest, whose messages are visible at once
		put, h.touched = h.touched, false
		return put
	}
	n := h.putCount()
	put = n != h.published.Own()
	h.published.StoreRelease(n)
	return put
}

// Depth is the number of messages that were put and not taken yet. Only the producer
// calls it.
func (h *Head) Depth() uint64 {
	h.takenSeen = h.taken.Load()
	return h.putCount() - h.takenSeen
}

// Room reports whether there is room for one more message. Only the producer calls it.
func (h *Head) Room() bool {
	return h.putCount()-h.takenSeen < h.room || h.Depth() < h.room
}

// Full reports whether Filled was called and Drained was not called since then.
func (h *Head) Full() bool { return h.full }

// Await makes the consumer report when the queue is at most half full. It returns false
// if the queue already is. Producer and consumer check in opposite order, so no wake-up
// is lost.
func (h *Head) Await() bool {
	h.waiting.Store(true)
	h.awaiting = h.Depth() > h.capacity/2 || !h.waiting.CompareAndSwap(true, false)
	return h.awaiting
}

// HasReported reports whether the consumer has reported room since Await was called. Only
// the producer calls it.
func (h *Head) HasReported() bool { return h.awaiting && !h.waiting.Load() }

// SetLocal records whether the producer runs on the consumer's goroutine. The consumer
// calls it.
func (h *Head) SetLocal(local bool) {
	if h.local && !local {
		h.taken.Store(h.get - h.pending)
	}
	h.local = local
}

// Drained ends the full state. Only the producer calls it.
func (h *Head) Drained() {
	h.full, h.awaiting = false, false
	h.takenSeen = h.taken.Load()
	h.limit = h.pos
	h.nextLimit = h.limit
}

// IsAwaited reports whether the producer waits for room.
func (h *Head) IsAwaited() bool { return h.waiting.Load() }

// HasRoomForWaiter reports, once, when a waiting producer has room again. The consumer
// calls it after it has taken messages.
func (h *Head) HasRoomForWaiter() bool {
	return h.waiting.Load() &&
		h.published.Load()-h.taken.Load() <= h.capacity/2 &&
		h.waiting.CompareAndSwap(true, false)
}

// lenLooks bounds how often Len reads counts that change at the same time.
const lenLooks = 8

// Len is the number of visible messages that were not taken yet. Any goroutine may call
// it.
func (h *Head) Len() int {
	removed := h.taken.Load() + h.evicted.Load() // read first, so that the difference is not negative
	for looks := 1; ; looks++ {
		published := h.published.Load()
		again := h.taken.Load() + h.evicted.Load()
		if again == removed || looks == lenLooks {
			return max(0, int(published-removed)) // other goroutines than producer and consumer may see the counts in another order
		}
		removed = again
	}
}

// HasMore reports whether a message is visible. Only the consumer calls it.
func (h *Head) HasMore() bool {
	removed := h.get + h.evicted.Load() // read first, because evicted messages were published before
	return h.published.Load() != removed
}

// Empty reports whether no message is visible to the consumer.
func (h *Head) Empty() bool { return h.Len() == 0 }

// Sent counts the messages that were sent: published or refused.
func (h *Head) Sent() uint64 { return h.refused.Load() + h.published.Load() }

// Published counts the messages that are or were visible.
func (h *Head) Published() uint64 { return h.published.Load() }

// Taken counts the messages that were passed to handlers.
func (h *Head) Taken() uint64 { return h.taken.Load() }

// Dropped counts the messages that will never be passed to a handler.
func (h *Head) Dropped() uint64 { return h.refused.Load() + h.evicted.Load() }

// Refuse counts a message that was sent but not put.
func (h *Head) Refuse() { h.refused.Add(1) }

// RefuseMany counts n messages that were sent but not put.
func (h *Head) RefuseMany(n uint64) { h.refused.Add(n) }

// Written counts the messages put. Any goroutine may call it. The messages that it
// counts are complete.
func (h *Head) Written() uint64 {
	for {
		base := h.base.Load()
		put := base + uint64(atomic.LoadUintptr(&h.pos))
		if h.base.Load() == base { // otherwise the producer has gone on to another segment
			return put
		}
	}
}

// Expose makes the first put messages visible, on any goroutine, while the producer
// continues. A Publish of the producer never makes visible messages invisible again.
func (h *Head) Expose(put uint64) (exposed bool) {
	for published := h.published.Load(); published < put; published = h.published.Load() {
		if h.published.CompareAndSwap(published, put) {
			return true
		}
	}
	return false
}

// Release removes the first n messages that Peek returned. It returns n.
func (h *Head) Release(n int) int {
	h.at += n
	h.take(n)
	return n
}

// take counts n messages as passed to handlers.
func (h *Head) take(n int) {
	h.get += uint64(n)
	set(&h.taken, h.get, h.local)
}

// Pass removes the first n messages that Peek returned, without counting them as passed
// to handlers. They count as queued until Settle: another node has not handled them yet.
// A queue from which Pass has removed messages must not be used with Release until all
// of them are settled.
func (h *Head) Pass(n int) {
	h.at += n
	h.get += uint64(n)
	h.pending += uint64(n)
}

// Settle counts n messages that Pass has removed as passed to handlers.
func (h *Head) Settle(n int) {
	h.pending -= uint64(n)
	set(&h.taken, h.get-h.pending, h.local)
}

// Pending is the number of messages that Pass has removed and Settle has not counted.
// Only the consumer calls it.
func (h *Head) Pending() int { return int(h.pending) }

// set sets a position that the other end reads. If both ends run on the same goroutine,
// the other end cannot check it concurrently, so a plain store is enough.
func set(c *count.Count, n uint64, local bool) {
	if local {
		c.StoreRelease(n)
		return
	}
	c.Store(n)
}

// DropSpares leaves the returned segments to the garbage collector. Only the consumer calls it,
// when the queue has been empty for some time.
func (h *Head) DropSpares() {
	if h.list != nil {
		h.list.spare.shared.Store(nil)
	}
}

// rewindMin is the least number of messages in a segment that Rewind uses again. With shorter ones, each message
// of a ping-pong would pay several nanoseconds for it.
const rewindMin = 32

// Rewind makes a queue without messages begin at the first slot of its segment again. So a queue
// between two instances on one goroutine neither grows nor touches more memory than its largest
// batch needs. It must be called on the goroutine of both ends.
func (h *Head) Rewind() {
	if 2*h.pos >= h.end && h.end >= rewindMin {
		h.rewind()
	}
}

func (h *Head) rewind() {
	if h.putCount() != h.get || h.pending != 0 || h.list.seg == nil {
		return
	}
	if 2*h.pos > h.end+1 { // otherwise the next messages overwrite all that were there
		h.list.seg.messages.Clear()
	}
	h.restart()
	h.at = 0
	if !h.full {
		h.takenSeen = h.get
		h.nextLimit = uintptr(min(uint64(h.end), h.capacity-1)) // as checkFull does
	}
}

// restart makes the next put begin at position 0, where it takes the slow path.
func (h *Head) restart() {
	put := h.putCount()
	h.setPos(0) // first, so that a concurrent reader of both never counts too many messages
	h.base.StoreRelease(put)
	h.limit, h.nextLimit = 0, 0
}

// Leave makes the consumer leave its segment, so that Trim can free it. Only the consumer calls it,
// when no message is visible. It reports whether all messages that it has seen are settled. The consumer
// may use the queue further: it returns to the segment if there are messages, unless Trim has freed it.
func (h *Head) Leave() (settled bool) {
	if l := h.list; l != nil && l.seg != nil {
		l.first, l.firstAt = l.seg, h.at
		l.seg, l.in, h.at = nil, slice{}, 0
		l.spare.shared.Store(nil)
	}
	h.left.Store(h.get + h.evicted.Load()) // last: Trim reads it first
	return h.pending == 0
}

// Unused reports whether the producer has put no message since the consumer called Leave. Only the producer
// calls it.
func (h *Head) Unused() bool { return !h.full && h.putCount() == h.left.Load() }

// Trim frees the segments of a queue that is unused. Only the producer calls it.
func (h *Head) Trim() {
	l := h.list
	if l == nil || l.last == nil {
		return
	}
	h.restart()
	h.end = 0
	*l.buf, l.last, l.first, l.firstAt, l.spare.own = slice{}, nil, nil, 0, nil
}

// Attached reports whether the consumer has a segment. Only the consumer calls it.
func (h *Head) Attached() bool { return h.list != nil && h.list.seg != nil }

// HeadList is a list of a producer's full queues; the zero value is empty.
type HeadList struct{ first *Head }

// Push adds h, which must not be in a list.
func (l *HeadList) Push(h *Head) { h.next, l.first = l.first, h }

// Any reports whether the list is not empty.
func (l *HeadList) Any() bool { return l.first != nil }

// Pop removes a queue from the list and returns it, or returns nil.
func (l *HeadList) Pop() *Head {
	h := l.first
	if h != nil {
		l.first, h.next = h.next, nil
	}
	return h
}
