package piper

import "sync/atomic"

// note is a message to a worker. Notes are part of what they speak of, so that
// posting allocates nothing; each is in at most one inbox at a time.
type note struct {
	next *note
	kind noteKind
	unit *Unit
	link *Link
}

type noteKind uint8

const (
	noteReady     noteKind = iota // link has messages for its receiver
	noteRoom                      // a full queue of link has room for its sender
	noteControl                   // unit has control bits
	noteTimer                     // the worker's timer has fired
	notePlacement                 // the rebalancer asks for something
)

// inbox is a stack that many push to and one takes whole.
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

// takeAll returns the notes, oldest first.
func (b *inbox) takeAll() *note {
	var oldest *note
	for n := b.top.Swap(nil); n != nil; {
		next := n.next
		n.next, oldest = oldest, n
		n = next
	}
	return oldest
}
