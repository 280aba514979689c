package cluster

import (
	"context"
	cryptorand "crypto/rand"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
)

// Node is this process as a node of a cluster. It implements piper.Nodes.
//
// One goroutine runs the core. Everything else puts what has happened into a mailbox,
// which that goroutine empties at once.
type Node struct {
	settings settings
	log      *slog.Logger
	boot     table.Boot
	core     *core
	began    time.Time

	transport transport.Transport
	close     func() error // closes the transport, if the node has opened it
	table     table.Table
	detector  member.Detector
	watching  context.CancelFunc

	mu   sync.Mutex
	mail happened
	busy bool          // mail is not empty, and wake has a token
	wake chan struct{} // capacity 1
	stop chan struct{} // closed when the loop must end
	done chan struct{} // closed when the loop has ended; nil before it begins
}

// newNode makes a node that is not connected yet.
func newNode(s settings) *Node {
	var seed [32]byte
	_, _ = cryptorand.Read(seed[:]) // never fails
	n := &Node{
		settings: s, log: s.log, boot: table.NewBoot(), began: time.Now(),
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	n.core = newCore(&n.settings.Config, s.node, uint64(n.boot), rand.New(rand.NewChaCha8(seed)), n.log)
	n.core.emit = func(to string, f []byte) {
		n.transport.Send(to, transport.Message{Group: n.group(), Payload: f})
	}
	return n
}

// group is the number of the frames of sessions in the transport.
func (n *Node) group() uint64 { return transport.GroupID(n.settings.Topology, "cluster/session") }

// post adds to the mailbox.
func (n *Node) post(add func(h *happened)) {
	n.mu.Lock()
	add(&n.mail)
	first := !n.busy
	n.busy = true
	n.mu.Unlock()
	if first {
		n.wake <- struct{}{}
	}
}

// take empties the mailbox.
func (n *Node) take(h *happened) {
	n.mu.Lock()
	defer n.mu.Unlock()
	*h, n.mail, n.busy = n.mail, happened{}, false
}

// loop runs the core until stop is closed.
func (n *Node) loop() {
	defer close(n.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var h happened
	for {
		now := time.Since(n.began)
		n.core.step(now, &h)
		timer.Stop()
		if at, ok := n.core.next(); ok {
			timer.Reset(max(at-now, 0))
		}
		h = happened{}
		select {
		case <-n.wake:
			n.take(&h)
		case <-timer.C:
		case <-n.stop:
			return
		}
	}
}

// Forward implements piper.Nodes.
func (n *Node) Forward(o *piper.Outlet, c piper.Chunk) {
	n.post(func(h *happened) { h.forwards = append(h.forwards, forward{o, c}) })
}

// Handled implements piper.Nodes.
func (n *Node) Handled(a *piper.Arrivals, count uint64) {
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
	n.dirty(in)
}

// Lost implements piper.Nodes.
func (n *Node) Lost(a *piper.Arrivals, count uint64) {
	in := a.State.(*inPair)
	in.lost.Store(count)
	n.dirty(in)
}

func (n *Node) dirty(in *inPair) {
	if !in.dirty.Swap(true) {
		n.post(func(h *happened) { h.handled = append(h.handled, in) })
	}
}

// Reply implements piper.Nodes.
func (n *Node) Reply(a *piper.Arrivals, call uint64, data []byte, err error) {
	n.post(func(h *happened) { h.replies = append(h.replies, reply{a.State.(*inPair), call, data, err}) })
}

// Quiet implements piper.Nodes.
func (n *Node) Quiet(group int) {
	n.post(func(h *happened) { h.quiet = append(h.quiet, group) })
}

// Stopping implements piper.Nodes.
func (n *Node) Stopping() {
	n.post(func(h *happened) { h.stopping = true })
}

// receive is called with the frames of another node.
func (n *Node) receive(from string, payloads [][]byte) {
	n.post(func(h *happened) {
		for _, p := range payloads {
			h.frames = append(h.frames, frame{from, p})
		}
	})
}
