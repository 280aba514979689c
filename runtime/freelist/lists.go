package freelist

import (
	"math"
	"math/bits"
)

const (
	// With sixteen lists for each power of two, the sizes in a class differ by less than
	// 1/16. The smallest classes have only one size.
	stepBits   = 4
	steps      = 1 << stepBits
	levels     = grainsBits - stepBits + 2 // one for up to sixteen grains, then one for each power of two
	levelsMask = uint32(math.MaxUint32)

	// Blocks in the class of the requested size may be too small. This many are tried
	// before a block of a higher class, which always fits, is split. A program that uses
	// one size then finds its own blocks again.
	probes = 4
)

// ref identifies a block: the number of its arena and, in the lower half, its own number.
type ref uint32

const (
	none      ref = math.MaxUint32
	arenasMax     = 1<<16 - 1 // per heap, so that no ref equals none
)

func refTo(a *arena, id uint16) ref { return ref(a.number)<<16 | ref(id) }

// lists holds the free blocks of a heap, in classes by size, and a bitmap of the classes
// that are not empty.
type lists struct {
	levels uint32         // bit l: a bit of steps[l] is set
	steps  [levels]uint16 // bit s of element l: class l*steps+s has blocks
	first  [levels * steps]ref
}

// class returns the class of a free block by its number of grains:
//
//	level 0: 1, 2 … 15 grains, one class for each size
//	level l: 2^(l+3) to 2^(l+4) grains, in sixteen equal steps
func class(grains uint32) int {
	if grains < steps {
		return int(grains)
	}
	top := bits.Len32(grains) - 1 - stepBits
	return (top+1)*steps + int(grains>>top)&(steps-1)
}

// next returns the lowest class from c on that is not empty, or -1.
func (l *lists) next(c int) int {
	level, step := c/steps, c%steps
	if level >= levels {
		return -1
	}
	if in := l.steps[level] >> step << step; in != 0 {
		return level*steps + bits.TrailingZeros16(in)
	}
	above := l.levels & (levelsMask << (level + 1))
	if above == 0 {
		return -1
	}
	level = bits.TrailingZeros32(above)
	return level*steps + bits.TrailingZeros16(l.steps[level])
}

// last returns the highest class that is not empty, or -1.
func (l *lists) last() int {
	if l.levels == 0 {
		return -1
	}
	level := bits.Len32(l.levels) - 1
	return level*steps + bits.Len16(l.steps[level]) - 1
}

// fill marks class c as not empty.
func (l *lists) fill(c int) {
	l.levels |= 1 << (c / steps)
	l.steps[c/steps] |= 1 << (c % steps)
}

// drain marks class c as empty.
func (l *lists) drain(c int) {
	l.steps[c/steps] &^= 1 << (c % steps)
	if l.steps[c/steps] == 0 {
		l.levels &^= 1 << (c / steps)
	}
}

// attach puts a free block at the head of its list. The block that was used last is used
// first, because it may still be in a cache.
func (h *heap) attach(a *arena, id uint16) {
	b := &a.blocks[id]
	c := class(b.grains)
	r, head := refTo(a, id), h.first[c]
	b.prev, b.next = none, head
	if head != none {
		h.at(head).prev = r
	} else {
		h.fill(c)
	}
	h.first[c] = r
	h.free += int(b.grains)
	h.freeBlocks++
}

// detach removes a free block from its list.
func (h *heap) detach(b *block) {
	c := class(b.grains)
	if b.next != none {
		h.at(b.next).prev = b.prev
	}
	if b.prev != none {
		h.at(b.prev).next = b.next
	} else {
		h.first[c] = b.next
		if b.next == none {
			h.drain(c)
		}
	}
	h.free -= int(b.grains)
	h.freeBlocks--
}

// find returns a free block of at least that many grains, or none.
func (h *heap) find(grains uint32) ref {
	c := class(grains)
	r := h.first[c]
	for range probes {
		if r == none {
			break
		}
		b := h.at(r)
		if b.grains >= grains {
			return r
		}
		r = b.next
	}
	if c = h.next(c + 1); c < 0 {
		return none
	}
	return h.first[c]
}

func (h *heap) at(r ref) *block { return &h.arenas[r>>16].blocks[uint16(r)] }
