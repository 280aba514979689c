package queue

import (
	"runtime"
	"sync/atomic"
)

// Ring is a bounded first-in first-out queue for any number of producers and consumers.
// NewRing makes one. It is linearizable but not lock-free: a goroutine that is stopped
// between claiming a slot and filling or emptying it blocks the goroutines that need
// the same slot.
//
// Each slot has a counter: with an even count the slot waits for a value, with an odd
// count it holds one (after Erik Rigtorp's MPMCQueue). Unlike the sequence numbers of
// Vyukov's queue, this works with every capacity from 1, not only with powers of two.
type Ring[T any] struct {
	slots []slot[T]
	_     [40]byte
	tail  atomic.Uint64 // position of the next push
	_     [56]byte
	head  atomic.Uint64 // position of the next pop
	_     [56]byte
}

type slot[T any] struct {
	turn  atomic.Uint64
	value T
}

// NewRing returns an empty ring for capacity values. It panics unless capacity is
// positive.
func NewRing[T any](capacity int) *Ring[T] {
	if capacity < 1 {
		panic("queue: the capacity of a ring must be positive")
	}
	return &Ring[T]{slots: make([]slot[T], capacity)}
}

// Cap is the capacity.
func (r *Ring[T]) Cap() int { return len(r.slots) }

// Len is the number of values. During concurrent calls of TryPush and TryPop it is an
// estimate between 0 and Cap.
func (r *Ring[T]) Len() int {
	head := r.head.Load()
	tail := r.tail.Load()
	if tail <= head {
		return 0
	}
	return min(int(tail-head), len(r.slots))
}

// TryPush appends v. It returns false if the ring is full.
func (r *Ring[T]) TryPush(v T) bool {
	for {
		pos := r.tail.Load()
		s := &r.slots[pos%uint64(len(r.slots))]
		lap := pos / uint64(len(r.slots)) * 2
		if s.turn.Load() == lap {
			maybeYield()
			if r.tail.CompareAndSwap(pos, pos+1) {
				s.value = v
				maybeYield()
				s.turn.Store(lap + 1)
				return true
			}
			continue
		}
		head := r.head.Load() // read before tail, so that it is at most pos
		maybeYield()
		if r.tail.Load() != pos {
			continue // another producer was faster
		}
		if pos-head < uint64(len(r.slots)) {
			runtime.Gosched() // a consumer has claimed the slot and not emptied it yet
			continue
		}
		return false
	}
}

// TryPop removes the oldest value. It returns false if the ring is empty.
func (r *Ring[T]) TryPop() (v T, ok bool) {
	for {
		pos := r.head.Load()
		s := &r.slots[pos%uint64(len(r.slots))]
		lap := pos / uint64(len(r.slots)) * 2
		if s.turn.Load() == lap+1 {
			maybeYield()
			if r.head.CompareAndSwap(pos, pos+1) {
				v = s.value
				var zero T
				s.value = zero
				maybeYield()
				s.turn.Store(lap + 2)
				return v, true
			}
			continue
		}
		if r.head.Load() != pos {
			continue
		}
		maybeYield()
		if r.tail.Load() > pos {
			runtime.Gosched() // a producer has claimed the slot and not filled it yet
			continue
		}
		return v, false
	}
}
