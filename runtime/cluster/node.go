package cluster

import (
	"context"
	cryptorand "crypto/rand"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/transport"
)

// Node is this process as a node of a cluster. It implements piper.Nodes.
//
// One goroutine runs the core. Everything else puts what has happened into a mailbox,
// which that goroutine empties at once.
type Node struct {
	mailbox
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
	opened    atomic.Pointer[opened] // for views
	client    *clientPart            // not nil: this process is a client
	clients   *clients

	stop chan struct{} // closed when the loop must end
	done chan struct{} // closed when the loop has ended; nil before it begins
}

// newNode makes a node that is not connected yet.
func newNode(s settings) *Node {
	var seed [32]byte
	_, _ = cryptorand.Read(seed[:]) // never fails
	n := &Node{
		mailbox: newMailbox(), settings: s, log: s.log, boot: table.NewBoot(), began: time.Now(),
		stop: make(chan struct{}),
	}
	n.core = newCore(&n.settings.Config, s.node, uint64(n.boot), rand.New(rand.NewChaCha8(seed)), n.log)
	n.clients = &clients{node: n}
	n.core.emit = func(to string, f []byte) {
		if isClient(to) {
			n.clients.send(to, f)
			return
		}
		n.transport.Send(to, transport.Message{Group: n.group(), Payload: f})
	}
	return n
}

// group is the number of the frames of sessions in the transport.
func (n *Node) group() uint64 { return transport.GroupID(n.settings.Topology, "cluster/session") }

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
