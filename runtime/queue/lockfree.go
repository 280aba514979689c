package queue

import (
	"sync"
	"sync/atomic"
)

// LockFree is an unbounded first-in first-out queue for any number of producers
// and consumers. The zero value is ready to use; it must not be copied.
//
// It is linearizable, and lock-free: whoever is held up within Push or Pop, even
// for good, keeps none of the others from going on. (Memory for a further block
// comes from the allocator, which has locks of its own.) It is the queue of
// rast.md 2.2 to 2.4 on blocks of places instead of nodes of one value; instead
// of counters of references the collector frees what nobody can reach.
//
// A producer claims a place by adding to the pushed count of the last block, and
// fills it; a consumer claims one by adding to the popped count of the first. So
// a place has one producer and one consumer. Where the consumer comes first it
// leaves a mark that the place is given up, and the producer claims another. No
// place becomes empty again: the algorithm of rast.md loses a message where a
// late producer finds a used place empty (docs/explanation/queues.md).
//
// Why it is lock-free: whoever goes round a loop has used up a place, and blocks
// end. At the end of one a producer appends a block that holds its value already,
// or finds that another producer has; a consumer finds such a block or returns.
//
// Why it is linearizable: pushes happen in the order in which the places that
// they filled were claimed. A pop happens when both have claimed its place. Where
// one finds nothing, it has seen at least as many claims of consumers as then of
// producers, and no block behind.
type LockFree[T any] struct {
	head   atomic.Pointer[block[T]] // nil before the first push
	_      [56]byte
	tail   atomic.Pointer[block[T]] // the last block or, for a moment, the one before
	_      [56]byte
	spares sync.Pool // of *spare[T] of the greatest length
}

// Push appends v. It has happened when it returns, and nothing of it is visible
// before: what may fail, to get memory, comes first.
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

// begin makes the first block. Head comes first: it moves only when tail is set.
func (q *LockFree[T]) begin() {
	q.head.CompareAndSwap(nil, newBlock[T](&q.spares, nil))
	maybeYield()
	q.tail.CompareAndSwap(nil, q.head.Load())
}

// extend appends a block that holds v, unless there is one behind b already.
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

// Pop takes the oldest value, or reports false where there is none.
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

// Len is the number of values; while others push and pop it is a guess, never
// below zero.
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
