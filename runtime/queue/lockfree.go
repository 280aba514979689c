package queue

import (
	"sync"
	"sync/atomic"
)

// LockFree is an unbounded first-in first-out queue for any number of producers and
// consumers. The zero value is ready to use. It must not be copied.
//
// It is linearizable and lock-free: a goroutine that is stopped within Push or Pop,
// even forever, does not stop the others. (Memory for a new block comes from the
// allocator, which has locks of its own.) It is a list of blocks of places. The garbage
// collector frees unreachable blocks, so there are no reference counters.
//
// A producer claims a place by incrementing the pushed count of the last block, and
// fills the place. A consumer claims a place by incrementing the popped count of the
// first block. So a place has one producer and one consumer. If the consumer comes
// first, it marks the place as abandoned, and the producer claims another place. A
// place never becomes empty again. If it did, a delayed producer could fill a place
// that no consumer looks at, and its message would be lost
// (docs/explanation/queues.md).
//
// It is lock-free because each repetition of a loop has used up a place, and blocks are
// finite. At the end of a block a producer appends a new block that already holds its
// value, or finds that another producer has appended one. A consumer finds such a block
// or returns.
//
// It is linearizable because pushes take effect in the order in which their places were
// claimed. A pop takes effect when producer and consumer have both claimed its place. A
// pop that returns false has seen at least as many claims of consumers as of producers,
// and no further block.
type LockFree[T any] struct {
	head   atomic.Pointer[block[T]] // nil before the first push
	_      [56]byte
	tail   atomic.Pointer[block[T]] // the last block or, for a short time, its predecessor
	_      [56]byte
	spares sync.Pool // of *spare[T] with the maximum length
}

// Push appends v. The step that may fail, the allocation, comes before v is visible.
// After Push returns, v is in the queue.
func (q *LockFree[T]) Push(v T) {
	for {
		b := q.tail.Load()
		if b == nil {
			q.begin()
			continue
		}
		maybeYield()
		if p := b.claim(&b.pushed); p != nil {
			maybeYield()
			if p.fill(v) {
				return
			}
			continue
		}
		if q.extend(b, v) {
			return
		}
	}
}

// begin makes the first block. It sets head first, because head moves only when tail is
// set.
func (q *LockFree[T]) begin() {
	q.head.CompareAndSwap(nil, newBlock[T](&q.spares, nil))
	maybeYield()
	q.tail.CompareAndSwap(nil, q.head.Load())
}

// extend appends a block that holds v, unless b already has a successor. It reports
// whether it did.
func (q *LockFree[T]) extend(b *block[T], v T) bool {
	next, mine := b.next.Load(), false
	if next == nil {
		next = newBlock(&q.spares, b)
		next.pushed.Store(1)
		next.places[0].fill(v)
		maybeYield()
		if mine = b.next.CompareAndSwap(nil, next); !mine {
			next.discard(&q.spares)
			next = b.next.Load()
		}
	}
	maybeYield()
	q.tail.CompareAndSwap(b, next)
	return mine
}

// Pop removes the oldest value. It returns false if the queue is empty.
func (q *LockFree[T]) Pop() (v T, ok bool) {
	for {
		b := q.head.Load()
		if b == nil {
			return v, false
		}
		maybeYield()
		if at := b.popped.Load(); at < uint64(len(b.places)) {
			maybeYield()
			if at >= b.pushed.Load() {
				return v, false
			}
			maybeYield()
			if p := b.claim(&b.popped); p != nil {
				maybeYield()
				if v, ok = p.take(); ok {
					return v, true
				}
				continue
			}
		}
		next := b.next.Load()
		if next == nil {
			return v, false
		}
		maybeYield()
		if q.head.CompareAndSwap(b, next) {
			b.recycle(&q.spares)
		}
	}
}

// Len is the number of values. During concurrent calls of Push and Pop it is an
// estimate that is never negative.
func (q *LockFree[T]) Len() int {
	first := q.head.Load()
	if first == nil {
		return 0
	}
	popped := first.base + first.claimed(&first.popped)
	last := q.tail.Load()
	if last == nil || last.base < first.base {
		last = first
	}
	for next := last; next != nil; next = next.next.Load() {
		last = next
	}
	pushed := last.base + last.claimed(&last.pushed)
	return int(max(pushed, popped) - popped) // consumers may be ahead
}
