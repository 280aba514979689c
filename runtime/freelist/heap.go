package freelist

import (
	"sync"

	"github.com/topogen/topogen/runtime/internal/race"
)

// A heap keeps one empty arena for new blocks, and another for each arenasPerEmpty arenas
// that are not empty. A load that varies by less requests no memory from Go.
const arenasPerEmpty = 4

// heap is a part of an allocator with its own lock: arenas and their free blocks.
type heap struct {
	mu        sync.Mutex
	allocator *Allocator
	index     int // in allocator.heaps
	lists
	arenas []*arena // by number; nil if it was returned
	unused []uint16 // numbers of arenas that were returned

	empty      int // arenas without a block in use
	free       int // free grains
	freeBlocks int // number of free blocks
	tally
}

// tally counts the operations of a heap. The heap is locked.
type tally struct {
	allocations, frees uint64
	blocks             int
	inUse              int // bytes that were requested
}

func newHeap(allocator *Allocator, index int) *heap {
	h := &heap{allocator: allocator, index: index}
	for c := range h.first {
		h.first[c] = none
	}
	return h
}

// allocate returns n bytes, from 1 to the size of an arena. It returns nil if the heap
// has no room and may not or cannot grow. If dirty is true, the bytes are not zero.
func (h *heap) allocate(n int, grow bool) (memory []byte, dirty bool) {
	grains := uint32((n + grain - 1) / grain)
	r := h.find(grains)
	if r == none {
		if !grow || !h.grow() {
			return nil, false
		}
		r = h.find(grains)
	}
	a, id := h.arenas[r>>16], uint16(r)
	b := &a.blocks[id]
	h.detach(b)
	if int(b.grains) == len(a.tags) {
		h.empty--
	}
	if b.grains > grains {
		h.attach(a, a.split(id, grains))
		b = &a.blocks[id] // split may have moved the blocks
	}
	b.size = uint32(n)
	dirty, b.dirty = b.dirty, true
	h.allocations++
	h.blocks++
	h.inUse += n
	from := int(b.first) * grain
	return a.memory[from : from+n : from+n], dirty
}

// release frees a block that was allocated as memory.
func (h *heap) release(a *arena, memory []byte) error {
	if a.returned {
		return ErrForeign
	}
	id, err := a.lookup(memory)
	if err != nil {
		return err
	}
	if race.Enabled {
		clear(memory[:cap(memory)]) // so that the race detector reports a later use of the block
	}
	b := &a.blocks[id]
	h.frees++
	h.blocks--
	h.inUse -= int(b.size)
	b.size = 0
	if next, ok := a.after(b); ok && a.blocks[next].size == 0 {
		h.detach(&a.blocks[next])
		a.merge(id, next)
	}
	if prev, ok := a.before(b); ok && a.blocks[prev].size == 0 {
		h.detach(&a.blocks[prev])
		a.merge(prev, id)
		id = prev
	}
	h.attach(a, id)
	if int(a.blocks[id].grains) == len(a.tags) {
		h.empty++
		h.trim(1 + (h.count()-h.empty)/arenasPerEmpty)
	}
	return nil
}

// count is the number of arenas.
func (h *heap) count() int { return len(h.arenas) - len(h.unused) }

// grow adds an arena, if it may, and reports whether it did.
func (h *heap) grow() bool {
	number := len(h.arenas)
	if len(h.unused) > 0 {
		number = int(h.unused[len(h.unused)-1])
	}
	if number >= h.allocator.arenasMax || !h.allocator.reserve(h.allocator.arena) {
		return false
	}
	a := newArena(h, uint16(number), h.allocator.arena)
	if number == len(h.arenas) {
		h.arenas = append(h.arenas, a)
	} else {
		h.unused = h.unused[:len(h.unused)-1]
		h.arenas[number] = a
	}
	h.allocator.index.add(a)
	h.attach(a, 0)
	h.empty++
	return true
}

// trim returns empty arenas to the collector until at most keep are left. Empty arenas
// are in a separate class, because no other block is as large.
func (h *heap) trim(keep int) {
	for c := class(uint32(h.allocator.arena / grain)); h.empty > keep; h.empty-- {
		r := h.first[c]
		a := h.arenas[r>>16]
		h.detach(&a.blocks[uint16(r)])
		h.arenas[a.number] = nil
		h.unused = append(h.unused, a.number)
		h.allocator.index.remove(a)
		h.allocator.unreserve(len(a.memory))
		a.returned = true
	}
}
