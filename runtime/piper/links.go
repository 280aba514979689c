package piper

import "math/bits"

// Links are the links of a sender to the instances of one processor. L is a pointer: to a
// link, or to the only queue of one. The zero value has no links.
//
// They are in a hash table, so that the memory of a sender follows the number of its links,
// not the number of instances. A table with a slot for each instance needs no hash.
type Links[L any] struct{ table *linkTable[L] }

type linkTable[L any] struct {
	slots     []linkSlot[L] // a power of two, of which one is empty; or one for each instance
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
		l.table = newLinkTable[L](slotsMin, instances)
	}
}

// Get returns the link to instance i of the processor with index to. The sender o makes the link if
// there is none.
func (l *Links[L]) Get(o *Out, to, i int) L {
	if t := l.table; t != nil {
		if s := t.slot(i); s.key != 0 {
			return s.link
		}
	}
	o.Link(to, i)
	return l.table.slot(i).link
}

// Set sets the link to instance i. There must be none yet.
func (l *Links[L]) Set(i int, link L) {
	if t := l.table; t.shift != 0 && 4*t.used >= 3*len(t.slots) {
		l.table = t.grown()
	}
	l.table.set(linkSlot[L]{i + 1, link})
}

// newLinkTable returns a table with that many slots, but at most one for each instance.
func newLinkTable[L any](slots, instances int) *linkTable[L] {
	if slots >= instances {
		return &linkTable[L]{slots: make([]linkSlot[L], instances), instances: instances}
	}
	return &linkTable[L]{slots: make([]linkSlot[L], slots), shift: uint8(65 - bits.Len(uint(slots))), instances: instances}
}

func (t *linkTable[L]) grown() *linkTable[L] {
	larger := newLinkTable[L](2*len(t.slots), t.instances)
	for _, s := range t.slots {
		if s.key != 0 {
			larger.set(s)
		}
	}
	return larger
}

func (t *linkTable[L]) set(s linkSlot[L]) {
	*t.slot(s.key - 1) = s
	t.used++
}

// slot returns the slot of the link to instance i, or the empty slot for it.
func (t *linkTable[L]) slot(i int) *linkSlot[L] {
	if t.shift == 0 {
		return &t.slots[i]
	}
	at := int(uint64(i) * 0x9e3779b97f4a7c15 >> t.shift) // 2^64 divided by the golden ratio: neighbors are far apart
	for t.slots[at].key != 0 && t.slots[at].key != i+1 {
		at = (at + 1) & (len(t.slots) - 1)
	}
	return &t.slots[at]
}
