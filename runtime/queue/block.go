package queue

import (
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/topogen/topogen/runtime/internal/count"
)

// block is a part of a LockFree queue: a fixed number of places, each used once.
//
// A block is never used again, so a goroutine that still refers to an old block does no
// harm; the garbage collector frees it later. Its places, which are most of the memory,
// are used again. That is safe because a goroutine touches a place only after it has
// claimed the place. Each place is claimed twice, and the second goroutine marks it as
// done.
type block[T any] struct {
	pushed atomic.Uint64 // number of places claimed by producers, including attempts beyond the end
	_      [56]byte
	popped atomic.Uint64 // the same for consumers; it may be ahead of pushed
	_      [56]byte
	places []place[T]
	next   atomic.Pointer[block[T]]
	base   uint64    // number of places in the previous blocks
	prev   *block[T] // for the consumer that moves head to the next block
	spare  *spare[T] // the owner of places
}

// spare holds the places of a former block, all empty.
type spare[T any] struct{ places []place[T] }

// place has one of two histories: empty, filled, done; or, if the consumer comes first,
// empty, abandoned, done.
type place[T any] struct {
	state count.Count
	value T // owned by the producer until the place is filled, then by the consumer
}

const (
	empty uint64 = iota
	filled
	abandoned
	done
)

// takeLooksMax is how often a consumer checks its place before it abandons the place. A
// producer needs about ten nanoseconds to fill a place, unless it is delayed.
const takeLooksMax = 64

// newBlock returns an empty block that follows prev, which may be nil.
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

// blockLen is the number of places in a block, given the number in the previous block.
func blockLen[T any](before int) int {
	return segmentLen(unsafe.Sizeof(place[T]{}), before, math.MaxUint64)
}

// claim claims a place, or returns nil at the end of the block. by is &b.pushed or
// &b.popped.
func (b *block[T]) claim(by *atomic.Uint64) *place[T] {
	if at := by.Add(1) - 1; at < uint64(len(b.places)) {
		return &b.places[at]
	}
	return nil
}

// claimed is the number of claimed places. by is &b.pushed or &b.popped.
func (b *block[T]) claimed(by *atomic.Uint64) uint64 {
	return min(by.Load(), uint64(len(b.places)))
}

// recycle keeps places for another block. Consumers that have just claimed the last
// places of b may still use them, so recycle takes the places of the previous block.
// Only the consumer that has moved head away from b calls it.
func (b *block[T]) recycle(spares *sync.Pool) {
	old := b.prev
	b.prev = nil // so that the last block does not keep all previous blocks alive
	if old == nil || len(old.places) != blockLen[T](len(old.places)) {
		return // new blocks are longer
	}
	for i := range old.places {
		if old.places[i].state.Load() != done {
			return // a goroutine still uses the place, so leave the block to the garbage collector
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

// fill stores v in a claimed place, unless the consumer has abandoned the place.
func (p *place[T]) fill(v T) bool {
	p.value = v
	maybeYield()
	if p.state.CompareAndSwap(empty, filled) {
		return true
	}
	p.release()
	return false
}

// take removes the value from a claimed place, or abandons the place.
func (p *place[T]) take() (v T, ok bool) {
	for range takeLooksMax {
		if p.state.Load() == filled {
			break
		}
	}
	if p.state.Load() != filled {
		if p.state.CompareAndSwap(empty, abandoned) {
			return v, false
		}
	}
	v = p.value
	p.release()
	return v, true
}

// release marks the place as done. The second goroutine that claimed the place calls
// it. It clears the value, so that the place keeps nothing alive.
func (p *place[T]) release() {
	var zero T
	p.value = zero
	maybeYield()
	p.state.StoreRelease(done)
}
