package queue

import (
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/internal/count"
)

// block is a part of a LockFree queue: so many places, each used once.
//
// A block is never used again, so that nobody who holds an old one does harm; the
// collector has it when nobody does. Its places, most of the memory, are: a
// goroutine touches a place only after it has claimed it, each place is claimed
// twice, and the second of the two says that it is done with it.
type block[T any] struct {
	pushed atomic.Uint64 // places claimed by producers, and attempts beyond the end
	_      [56]byte
	popped atomic.Uint64 // the same by consumers; it may be ahead of pushed
	_      [56]byte
	places []place[T]
	next   atomic.Pointer[block[T]]
	base   uint64    // places in the blocks before
	prev   *block[T] // for the consumer that moves head away from here
	spare  *spare[T] // what places came from
}

// spare is places without a block, all empty.
type spare[T any] struct{ places []place[T] }

// place goes one of two ways: empty, filled, done; or, where the consumer comes
// first, empty, given up, done.
type place[T any] struct {
	state count.Count
	value T // the producer's until the place is filled, then the consumer's
}

const (
	empty uint64 = iota
	filled
	abandoned
	done
)

// patience is how often a consumer looks at its place before it gives it up. The
// producer needs some ten nanoseconds, unless it is held up.
const takeLooksMax = 64

// newBlock returns an empty block to come after prev, which may be nil.
func newBlock[T any](spares *sync.Pool, prev *block[T]) *block[T] {
	b := &block[T]{prev: prev}
	n := 0
	if prev != nil {
		n = len(prev.places)
		b.base = prev.base + uint64(n)
	}
	grown := blockLen[T](n)
	if n == grown {
		b.spare, _ = spares.Get().(*spare[T])
	}
	if b.spare == nil {
		b.spare = &spare[T]{make([]place[T], grown)}
	}
	b.places = b.spare.places
	return b
}

// blockLen is the number of places in a block after one with so many.
func blockLen[T any](before int) int {
	return segmentLen(unsafe.Sizeof(place[T]{}), before, math.MaxUint64)
}

// claim gives its caller a place, or nil at the end of the block; by is pushed or
// popped.
func (b *block[T]) claim(by *atomic.Uint64) *place[T] {
	if at := by.Add(1) - 1; at < uint64(len(b.places)) {
		return &b.places[at]
	}
	return nil
}

// claimed is the number of places claimed; by is pushed or popped.
func (b *block[T]) claimed(by *atomic.Uint64) uint64 {
	return min(by.Load(), uint64(len(b.places)))
}

// recycle keeps places for another block. Those of b itself may still be in use
// by consumers that claimed the last ones just now, so it looks at the block
// before. Only the consumer that has moved head away from b calls it.
func (b *block[T]) recycle(spares *sync.Pool) {
	old := b.prev
	b.prev = nil // the list is not to be held by its end
	if old == nil || len(old.places) != blockLen[T](len(old.places)) {
		return // the next block is longer
	}
	for i := range old.places {
		if old.places[i].state.Load() != done {
			return // somebody was held up in it: the collector's
		}
	}
	clear(old.places)
	spares.Put(old.spare)
}

// discard takes back a block that was filled with one value and not appended.
func (b *block[T]) discard(spares *sync.Pool) {
	b.places[0] = place[T]{}
	if len(b.places) == blockLen[T](len(b.places)) {
		spares.Put(b.spare)
	}
}

// fill puts v into a claimed place unless its consumer has given it up.
func (p *place[T]) fill(v T) bool {
	p.value = v
	maybeYield()
	if p.state.CompareAndSwap(empty, filled) {
		return true
	}
	p.release()
	return false
}

// take takes the value out of a claimed place, or gives the place up.
func (p *place[T]) take() (v T, ok bool) {
	for range takeLooksMax {
		if p.state.Load() == filled {
			break
		}
	}
	if p.state.Load() != filled {
		if bug.On(bug.SentinelForgotten) || p.state.CompareAndSwap(empty, abandoned) {
			return v, false
		}
	}
	v = p.value
	p.release()
	return v, true
}

// leave is called by the second that comes to a place: nothing is held on to by
// a place that is done.
func (p *place[T]) release() {
	var zero T
	p.value = zero
	maybeYield()
	p.state.StoreRelease(done)
}
