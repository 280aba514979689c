package freelist

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// index maps an address to its arena. It is read without a lock: when an arena is added
// or removed, the list is copied.
type index struct {
	mu     sync.Mutex
	sorted atomic.Pointer[[]entry] // by base
}

type entry struct {
	base, end uintptr
	arena     *arena
}

// find returns the arena that contains the address, or nil.
func (x *index) find(at uintptr) *arena {
	list := x.sorted.Load()
	if list == nil {
		return nil
	}
	low, high := 0, len(*list)
	for low < high {
		middle := int(uint(low+high) / 2)
		if e := &(*list)[middle]; at < e.base {
			high = middle
		} else if at >= e.end {
			low = middle + 1
		} else {
			return e.arena
		}
	}
	return nil
}

func (x *index) add(a *arena) {
	x.change(func(list []entry, at int) []entry {
		return slices.Insert(list, at, entry{a.base, a.base + uintptr(len(a.memory)), a})
	}, a)
}

func (x *index) remove(a *arena) {
	x.change(func(list []entry, at int) []entry { return slices.Delete(list, at, at+1) }, a)
}

// change applies do to a copy of the list. at is the position of arena a in the list.
func (x *index) change(do func(list []entry, at int) []entry, a *arena) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []entry
	if old := x.sorted.Load(); old != nil {
		list = make([]entry, len(*old), len(*old)+1)
		copy(list, *old)
	}
	at, _ := slices.BinarySearchFunc(list, a.base, func(e entry, base uintptr) int { return cmp.Compare(e.base, base) })
	list = do(list, at)
	x.sorted.Store(&list)
}
