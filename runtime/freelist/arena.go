package freelist

import "unsafe"

const (
	grain      = 64 // bytes: blocks begin at, and are multiples of, a cache line, so that two never share a cache line
	grainsBits = 16
	grainsMax  = 1 << grainsBits // per arena, so that 16 bits number its blocks
)

// arena is memory from Go that is divided into blocks. The data about the blocks is
// stored outside of this memory, so that writes to blocks cannot damage it.
type arena struct {
	memory   []byte
	base     uintptr
	heap     *heap
	number   uint16
	returned bool // to the collector

	tags   []uint16 // by grain: number of the block that begins or ends there; stale elsewhere
	blocks []block
	unused int // number of an unused entry of blocks, the head of a list linked by next; or -1
}

// block is a part of an arena, free or in use. Two neighbours are never both free.
type block struct {
	next, prev ref    // in the list of free blocks of its class
	size       uint32 // bytes in use; 0: the block is free
	first      uint32 // grain in the arena, or nowhere
	grains     uint32
	dirty      bool // it was in use since Go cleared it
}

const nowhere = grainsMax

func newArena(h *heap, number uint16, bytes int) *arena {
	a := &arena{
		memory: make([]byte, bytes),
		heap:   h,
		number: number,
		tags:   make([]uint16, bytes/grain),
		unused: -1,
	}
	a.base = address(a.memory)
	a.mark(a.add(block{grains: uint32(bytes / grain)}))
	return a
}

// address returns the beginning of the array of b. It is only compared, and never
// converted back to a pointer. Arenas do not move, because they are in Go's heap.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// add stores a block and returns its number.
func (a *arena) add(b block) uint16 {
	if a.unused < 0 {
		a.blocks = append(a.blocks, b)
		return uint16(len(a.blocks) - 1)
	}
	id := a.unused
	if next := a.blocks[id].next; next == none {
		a.unused = -1
	} else {
		a.unused = int(next)
	}
	a.blocks[id] = b
	return uint16(id)
}

// drop releases the number of a block.
func (a *arena) drop(id uint16) {
	next := none
	if a.unused >= 0 {
		next = ref(a.unused)
	}
	a.blocks[id] = block{first: nowhere, next: next}
	a.unused = int(id)
}

// mark writes a block's number at its beginning and end.
func (a *arena) mark(id uint16) {
	b := &a.blocks[id]
	a.tags[b.first] = id
	a.tags[b.first+b.grains-1] = id
}

// split cuts a block after some grains and returns the rest.
func (a *arena) split(id uint16, grains uint32) (rest uint16) {
	b := &a.blocks[id]
	tail := block{first: b.first + grains, grains: b.grains - grains, dirty: b.dirty}
	b.grains = grains
	a.mark(id)
	rest = a.add(tail)
	a.mark(rest)
	return rest
}

// merge combines two free neighbours into one block, with the number of the first.
func (a *arena) merge(front, back uint16) {
	f, b := &a.blocks[front], &a.blocks[back]
	f.grains += b.grains
	f.dirty = f.dirty || b.dirty
	a.drop(back)
	a.mark(front)
}

// before and after return the neighbours of a block.
func (a *arena) before(b *block) (id uint16, ok bool) {
	if b.first == 0 {
		return 0, false
	}
	return a.tags[b.first-1], true
}

func (a *arena) after(b *block) (id uint16, ok bool) {
	end := int(b.first + b.grains)
	if end == len(a.tags) {
		return 0, false
	}
	return a.tags[end], true
}

// lookup returns the block in use that was allocated as b, or the reason why there is
// none.
func (a *arena) lookup(b []byte) (id uint16, err error) {
	offset := address(b) - a.base
	at := uint32(offset / grain)
	id = a.tags[at]
	found := &a.blocks[id]
	if found.first == at && offset%grain == 0 && int(found.size) == cap(b) && cap(b) > 0 {
		return id, nil
	}
	if a.at(at).size == 0 {
		return 0, ErrFreed
	}
	return 0, ErrForeign
}

// at returns the block that contains a grain. It goes through all blocks before it,
// because tags inside of a block are stale.
func (a *arena) at(at uint32) *block {
	for i := uint32(0); ; {
		b := &a.blocks[a.tags[i]]
		i += b.grains
		if at < i {
			return b
		}
	}
}
