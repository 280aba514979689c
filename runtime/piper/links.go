package piper

import (
	"math/bits"
	"unsafe"
)

// Links are the links of a sender to the instances of one processor. L is a pointer: to a
// link, or to the only queue of one. The zero value has no links.
//
// They are in a hash table, so that the memory of a sender follows the number of its links,
// not the number of instances. A table with a slot for each instance needs no hash.
type Links[L any] struct{ table *linkTable[L] }

// linkTable stays the same while it grows and shrinks: the sender of a restarted instance is a copy.
type linkTable[L any] struct {
	slots     []linkSlot[L] // none; a power of two, of which one is empty; or one for each instance
	shift     uint8         // of the hash; 0: the index of the instance is that of the slot
	used      int           // number of slots
	instances int
}

type linkSlot[L any] struct {
	key  int // the index of the instance plus one; 0: the slot is empty
	link L
}

const slotsMin = 4

// Made reports whether Make was called.
func (l *Links[L]) Made() bool { return l.table != nil }

// Make makes a table for links to that many instances, unless there is one.
func (l *Links[L]) Make(instances int) {
	if l.table == nil {
		l.table = &linkTable[L]{instances: instances}
	}
}

// Get returns the link to instance i of the processor with index to. The sender o makes the link if
// there is none.
func (l *Links[L]) Get(o *Out, to, i int) L {
	if t := l.table; t != nil && len(t.slots) != 0 {
		if s := t.slot(i); s.key != 0 {
			return s.link
		}
	}
	o.made = nil
	o.Link(to, i)
	if made := o.made; made != nil {
		made.table = (*linkTable[*Link])(unsafe.Pointer(l.table)) // the layout does not depend on L
		o.made = nil
	}
	return l.table.slot(i).link
}

// Set sets the link to instance i. There must be none yet.
func (l *Links[L]) Set(i int, link L) {
	t := l.table
	if len(t.slots) == 0 {
		t.resize(slotsMin)
	} else if t.shift != 0 && 4*t.used >= 3*len(t.slots) {
		t.resize(2 * len(t.slots))
	}
	*t.slot(i) = linkSlot[L]{i + 1, link}
	t.used++
}

// resize makes t have that many slots, but at most one for each instance.
func (t *linkTable[L]) resize(slots int) {
	before := t.slots
	if slots >= t.instances {
		t.slots, t.shift = make([]linkSlot[L], t.instances), 0
	} else {
		t.slots, t.shift = make([]linkSlot[L], slots), uint8(65-bits.Len(uint(slots)))
	}
	for _, s := range before {
		if s.key != 0 {
			*t.slot(s.key - 1) = s
		}
	}
}

// remove removes the link to instance i. A table with few links becomes smaller.
func (t *linkTable[L]) remove(i int) {
	t.empty(t.slot(i))
	switch t.used--; {
	case t.used == 0:
		t.slots = nil
	case len(t.slots) > slotsMin && t.used <= len(t.slots)/8:
		t.resize(max(slotsMin, 1<<bits.Len(uint(2*t.used-1))))
	}
}

// slot returns the slot of the link to instance i, or the empty slot for it.
func (t *linkTable[L]) slot(i int) *linkSlot[L] {
	if t.shift == 0 {
		return &t.slots[i]
	}
	at := t.home(i)
	for t.slots[at].key != 0 && t.slots[at].key != i+1 {
		at = (at + 1) & (len(t.slots) - 1)
	}
	return &t.slots[at]
}

// home is the position at which the search for the link to instance i begins.
func (t *linkTable[L]) home(i int) int {
	return int(uint64(i) * 0x9e3779b97f4a7c15 >> t.shift) // 2^64 divided by the golden ratio: neighbors are far apart
}

// empty empties a slot, and moves those links back that a search would not find any more.
func (t *linkTable[L]) empty(s *linkSlot[L]) {
	if t.shift != 0 {
		mask := len(t.slots) - 1
		at := t.home(s.key - 1)
		for &t.slots[at] != s {
			at = (at + 1) & mask
		}
		for next := (at + 1) & mask; t.slots[next].key != 0; next = (next + 1) & mask {
			if (next-t.home(t.slots[next].key-1))&mask >= (next-at)&mask {
				t.slots[at] = t.slots[next]
				at = next
			}
		}
		s = &t.slots[at]
	}
	*s = linkSlot[L]{}
}
