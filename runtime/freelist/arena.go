package freelist

import "unsafe"

const (
	grain      = 64 // bytes: blocks begin at, and are multiples of, a cache line, so that two never share one
	grainsBits = 16
	grainsMax  = 1 << grainsBits // in an arena, so that 16 bits number its blocks
)

// arena is memory from Go, all of it divided into blocks. What is known about
// these stands beside the memory: nobody who holds a block, or has freed it,
// can write there.
type arena struct {
	memory   []byte
	base     uintptr
	heap     *heap
	number   uint16
	returned bool // back to the collector

	tags   []uint16 // by grain: where a block begins and where it ends, its number; stale elsewhere
	blocks []block
	unused int // a block's number that is none, and leads to more of them by next; or -1
}

// block is a part of an arena, free or in use. No two neighbours are both free.
type block struct {
	next, prev ref    // in the list of free blocks of its class
	size       uint32 // bytes in use; 0: the block is free
	first      uint32 // grain in the arena, or nowhere
	grains     uint32
	dirty      bool // was in use since Go has zeroed it
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

// address is where the array of b begins. It is compared, and never made a
// pointer again. What an arena holds does not move: it is in Go's heap.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// add numbers a block.
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

// drop gives the number of a block back.
func (a *arena) drop(id uint16) {
	next := none
	if a.unused >= 0 {
		next = ref(a.unused)
	}
	a.blocks[id] = block{first: nowhere, next: next}
	a.unused = int(id)
}

// mark writes a block's number where it begins and ends.
func (a *arena) mark(id uint16) {
	b := &a.blocks[id]
	a.tags[b.first] = id
	a.tags[b.first+b.grains-1] = id
}

// split cuts a block off after so many grains and returns what is behind it.
func (a *arena) split(id uint16, grains uint32) (rest uint16) {
	b := &a.blocks[id]
	tail := block{first: b.first + grains, grains: b.grains - grains, dirty: b.dirty}
	b.grains = grains
	a.mark(id)
	rest = a.add(tail)
	a.mark(rest)
	return rest
}

// merge makes one free block of two neighbours, with the number of the first.
func (a *arena) merge(front, back uint16) {
	f, b := &a.blocks[front], &a.blocks[back]
	f.grains += b.grains
	f.dirty = f.dirty || b.dirty
	a.drop(back)
	a.mark(front)
}

// before returns the neighbour in front of a block, after that behind it.
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

// lookup returns the block in use that was handed out as b, or why there is none.
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

// at returns the block that grain at is in. It goes through all before: tags
// inside of a block are stale.
func (a *arena) at(at uint32) *block {
	for i := uint32(0); ; {
		b := &a.blocks[a.tags[i]]
		i += b.grains
		if at < i {
			return b
		}
	}
}
