package freelist

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Allocator hands out blocks of bytes and takes them back. It is safe for
// concurrent use; a block may be freed by another goroutine than it was
// allocated by. New makes one; it must not be copied.
type Allocator struct {
	arena     int   // bytes
	limit     int64 // bytes; 0 is none
	dirty     bool
	arenasMax int // of a heap

	held  atomic.Int64 // bytes asked of Go
	index index
	heaps []*heap
	local sync.Pool // of *heap: to each processor of the Go scheduler one that it has to itself, mostly
	next  atomic.Uint64
	large large

	refused, failed atomic.Uint64
}

// New returns an allocator without memory: the first block asks Go for it.
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

// Allocate returns a block of n bytes, all zero unless the allocator is Dirty.
// Its capacity is n too: append moves away from it instead of writing beyond. It
// is the caller's until Free. A block that fits into an arena begins at a multiple
// of 64 bytes; a larger one comes from Go, and goes back to it with Free.
//
// For 0 bytes Allocate returns an empty slice that is not nil, needs no memory,
// and may be freed or not. It returns nil where the Limit is reached, or the heap
// has 65,535 arenas. It panics where n is negative, or more than Go can make.
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

// Free takes a block back. It takes what Allocate has returned, or a part from
// its beginning that has kept the capacity, such as b[:0]. Everything else is
// refused, with ErrFreed or ErrForeign, and changes nothing. Nobody may use the
// block from then on: neither b nor any other slice of it.
//
// A second Free of a block that was handed out again, as large as before, is
// that of its new owner: nothing tells the two slices apart.
func (a *Allocator) Free(b []byte) error {
	err := a.free(b)
	if err != nil {
		a.failed.Add(1)
	}
	return err
}

func (a *Allocator) free(b []byte) error {
	in := a.index.find(address(b))
	if in == nil {
		return a.freeLarge(b)
	}
	in.heap.mu.Lock()
	defer in.heap.mu.Unlock()
	return in.heap.release(in, b)
}

// enter returns a heap, locked: that of the processor, or its neighbour where
// somebody is in it, which is then that of the processor.
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

// leave is called when the lock of the heap is free again.
func (a *Allocator) leave(h *heap) {
	if len(a.heaps) > 1 {
		a.local.Put(h)
	}
}

// allocateAnywhere returns a block from any heap that has room without growing,
// or nil.
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

// reserve reports whether so many bytes may be asked of Go, and counts them.
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
