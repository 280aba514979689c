package freelist

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Allocator allocates and frees blocks of bytes. It is safe for concurrent use, and a
// block may be freed by another goroutine than the one by which it was allocated. Use
// New. Do not copy an Allocator.
type Allocator struct {
	arena     int   // bytes
	limit     int64 // bytes; 0: no limit
	dirty     bool
	arenasMax int // per heap

	held  atomic.Int64 // bytes from Go
	index index
	heaps []*heap
	local sync.Pool // of *heap: the heap that a processor of the Go scheduler mostly uses alone
	next  atomic.Uint64
	large large

	refused, failed atomic.Uint64
}

// New returns an allocator without memory. It gets memory from Go for the first block.
func New(options ...Option) *Allocator {
	a := &Allocator{arena: arenaDefault, arenasMax: arenasMax}
	for _, set := range options {
		if set != nil {
			set(a)
		}
	}
	for a.limit > 0 && int64(a.arena) > a.limit && a.arena > arenaMin {
		a.arena /= 2
	}
	if a.heaps == nil {
		a.heaps = make([]*heap, min(runtime.GOMAXPROCS(0), heapsDefault))
	}
	for i := range a.heaps {
		a.heaps[i] = newHeap(a, i)
	}
	return a
}

// Allocate returns a block of n bytes, all zero unless the allocator is Dirty. Its
// capacity is n too, so append copies it instead of writing beyond it. The block belongs
// to the caller until Free. A block that fits into an arena begins at a multiple of 64
// bytes. A larger block comes directly from Go, and Free returns it to Go.
//
// For n = 0 Allocate returns an empty slice that is not nil, uses no memory, and need not
// be freed. It returns nil if the Limit is reached or the heap has 65,535 arenas. It
// panics if n is negative or larger than Go can allocate.
func (a *Allocator) Allocate(n int) []byte {
	switch {
	case n < 0:
		panic(fmt.Sprintf("freelist: Allocate of %d bytes", n))
	case n == 0:
		return []byte{}
	case n > a.arena:
		return a.allocateLarge(n)
	}
	h := a.enter()
	b, dirty := h.allocate(n, true)
	h.mu.Unlock()
	a.leave(h)
	if b == nil {
		if b, dirty = a.allocateAnywhere(n); b == nil {
			a.refused.Add(1)
			return nil
		}
	}
	if dirty && !a.dirty {
		clear(b)
	}
	return b
}

// Free frees a block. b must be a slice that Allocate returned, or a part of it with the
// same beginning and capacity, such as b[:0]. For any other slice Free returns ErrFreed
// or ErrForeign and changes nothing. Do not use the block after Free, neither through b
// nor through another slice of it.
//
// If a block was freed and allocated again with the same size, a second Free of the old
// slice frees the new owner's block, because the two slices are equal.
func (a *Allocator) Free(b []byte) error {
	err := a.free(b)
	if err != nil {
		a.failed.Add(1)
	}
	return err
}

func (a *Allocator) free(b []byte) error {
	owner := a.index.find(address(b))
	if owner == nil {
		return a.freeLarge(b)
	}
	owner.heap.mu.Lock()
	defer owner.heap.mu.Unlock()
	return owner.heap.release(owner, b)
}

// enter returns a locked heap: the heap of the processor, or the next heap if that one is
// locked. The next heap then becomes the heap of the processor.
func (a *Allocator) enter() *heap {
	if len(a.heaps) == 1 {
		a.heaps[0].mu.Lock()
		return a.heaps[0]
	}
	h, _ := a.local.Get().(*heap)
	if h == nil {
		h = a.heaps[a.next.Add(1)%uint64(len(a.heaps))]
	}
	if !h.mu.TryLock() {
		h = a.heaps[(h.index+1)%len(a.heaps)]
		h.mu.Lock()
	}
	return h
}

// leave is called after the heap was unlocked.
func (a *Allocator) leave(h *heap) {
	if len(a.heaps) > 1 {
		a.local.Put(h)
	}
}

// allocateAnywhere returns a block from any heap that has room without growing, or nil.
func (a *Allocator) allocateAnywhere(n int) (b []byte, dirty bool) {
	for _, h := range a.heaps {
		h.mu.Lock()
		b, dirty = h.allocate(n, false)
		h.mu.Unlock()
		if b != nil {
			break
		}
	}
	return b, dirty
}

// reserve counts bytes that will be requested from Go. It returns false if the limit
// would be exceeded.
func (a *Allocator) reserve(bytes int) bool {
	for {
		held := a.held.Load()
		if a.limit > 0 && int64(bytes) > a.limit-held {
			return false
		}
		if a.held.CompareAndSwap(held, held+int64(bytes)) {
			return true
		}
	}
}

func (a *Allocator) unreserve(bytes int) { a.held.Add(-int64(bytes)) }
