package cluster

import (
	"sync"

	"github.com/topogen/topogen/runtime/piper/border"
)

// mailbox collects what has happened until the core looks at it. It has those methods of
// border.Nodes that must not wait. Any goroutine may call them.
type mailbox struct {
	mu   sync.Mutex
	mail happened
	busy bool          // mail is not empty
	wake chan struct{} // capacity 1; has a token if mail is not empty, unless posted looks at it

	posted func() // called after each post in place of the token; may be nil
}

func newMailbox() mailbox { return mailbox{wake: make(chan struct{}, 1)} }

// post adds to the mailbox.
func (b *mailbox) post(add func(h *happened)) {
	b.mu.Lock()
	add(&b.mail)
	first := !b.busy
	b.busy = true
	b.mu.Unlock()
	if !first {
		return
	}
	if b.posted != nil {
		b.posted()
		return
	}
	b.awake()
}

// awake sends a token unless there is one.
func (b *mailbox) awake() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take empties the mailbox. It reads how many messages were
// handled here and not later: the replies to all of them have been posted before, and a
// reply must be sent before the confirmation of its message.
func (b *mailbox) take(h *happened) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*h, b.mail, b.busy = b.mail, happened{}, false
	for _, in := range h.handled {
		in.dirty.Store(false) // before the counts are read
		in.done = in.handled.Load()
	}
}

// Forward implements border.Nodes.
func (b *mailbox) Forward(o *border.Outlet, c border.Chunk) {
	b.post(func(h *happened) { h.forwards = append(h.forwards, forward{o, c}) })
}

// Handled implements border.Nodes.
func (b *mailbox) Handled(a *border.Arrivals, count uint64) {
	in := a.State.(*inPair)
	for { // several instances may report at the same time
		before := in.handled.Load()
		if before >= count {
			return
		}
		if in.handled.CompareAndSwap(before, count) {
			break
		}
	}
	if !in.dirty.Swap(true) {
		b.post(func(h *happened) { h.handled = append(h.handled, in) })
	}
}

// Reply implements border.Nodes.
func (b *mailbox) Reply(a *border.Arrivals, call border.Call, data []byte, err error) {
	b.post(func(h *happened) { h.replies = append(h.replies, reply{a.State.(*inPair), call, data, err}) })
}

// Quiet implements border.Nodes.
func (b *mailbox) Quiet(group int) {
	b.post(func(h *happened) { h.quiet = append(h.quiet, group) })
}

// Full implements border.Nodes.
func (b *mailbox) Full(group int) {
	b.post(func(h *happened) { h.full = append(h.full, group) })
}

// Stopping implements border.Nodes.
func (b *mailbox) Stopping() {
	b.post(func(h *happened) { h.stopping = true })
}

// receive is called with the frames of another node.
func (b *mailbox) receive(from string, payloads [][]byte) {
	b.post(func(h *happened) {
		for _, p := range payloads {
			h.addFrame(frame{from: from, data: p})
		}
	})
}
