package piper

import (
	"sync/atomic"
	"unsafe"
)

// note is a message to a worker. Links, units and workers contain their notes, so
// posting allocates nothing. A note is in at most one inbox at a time.
type note struct {
	next *note
	kind noteKind
}

// link is the link that contains the note.
func (n *note) link() *Link {
	offset := unsafe.Offsetof(Link{}.readyNote)
	if n.kind == noteRoom {
		offset = unsafe.Offsetof(Link{}.roomNote)
	}
	return (*Link)(unsafe.Add(unsafe.Pointer(n), -int(offset)))
}

// unit is the unit that contains the note.
func (n *note) unit() *Unit {
	return (*Unit)(unsafe.Add(unsafe.Pointer(n), -int(unsafe.Offsetof(Unit{}.controlNote))))
}

type noteKind uint8

const (
	noteReady     noteKind = iota // link has messages for its receiver
	noteRoom                      // a full queue of link has room for its sender
	noteControl                   // unit has new control bits
	noteTimer                     // the worker's timer has fired
	notePlacement                 // the rebalancer has a request or a new configuration
)

// inbox is a stack to which many goroutines push. One goroutine takes all notes at
// once.
type inbox struct{ top atomic.Pointer[note] }

func (b *inbox) push(n *note) {
	for {
		top := b.top.Load()
		n.next = top
		if b.top.CompareAndSwap(top, n) {
			return
		}
	}
}

func (b *inbox) empty() bool { return b.top.Load() == nil }

// takeAll removes all notes and returns them, oldest first.
func (b *inbox) takeAll() *note {
	var oldest *note
	for n := b.top.Swap(nil); n != nil; {
		next := n.next
		n.next, oldest = oldest, n
		n = next
	}
	return oldest
}
