package cluster

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/transport"
)

// Node is this process as a node of a cluster. It implements border.Nodes.
//
// Everything that happens is put into a mailbox. The goroutine that does it also runs the
// core if no other goroutine does, because to wake one for each message would take longer
// than the message. A goroutine of the node runs the core when a time has come, and when
// the mailbox was filled again in the meantime.
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
	opened    atomic.Pointer[opened] // for views
	ending    atomic.Bool            // End was called
	knowsEnd  atomic.Bool            // the topology has finished on this node
	endNoted  sync.Once              // see noteEnd
	farewells farewells
	entered   bool                   // this process was entered in the address table
	where     atomic.Pointer[lookup] // for Find
	client    *clientPart            // not nil: this process is a client
	clients   *clients
	names     *names
	fence     fence
	links     *links
	gone      gone
	removing  atomic.Bool // an operator's command removes a node

	duplicates duplicates // in the log

	running sync.Mutex // guards core
	started bool       // guarded by running
	timer   *time.Timer

	proposals sync.WaitGroup // transactions of the core

	ctx  context.Context // ends when the loop must end
	stop context.CancelFunc
	done chan struct{} // closed when the loop has ended; nil before it begins
}

// newNode makes a node that is not connected yet.
func newNode(s settings) *Node {
	n := newProcess(s)
	c := newNodeCore(&n.settings.Config, s.node, uint64(n.boot), newRand(), n.log)
	n.core = c.core
	n.farewells.node, n.farewells.known = n, map[string]bool{}
	n.gone.node = n
	n.names, n.fence.node = newNames(n), n
	c.propose = n.propose
	n.clients = newClients(n)
	c.clients.forgotten, c.clients.drop, c.clients.owner = n.clients.forgotten, n.clients.drop, n.clients.ownerOf
	c.emit = func(to string, f []byte) {
		if isClient(to) {
			n.clients.send(to, f)
			return
		}
		n.sendFrame(to, f)
	}
	return n
}

// newProcess makes what nodes and clients have in common.
func newProcess(s settings) *Node {
	n := &Node{
		mailbox: newMailbox(), settings: s, log: s.log, boot: table.NewBoot(), began: time.Now(), gone: newGone(),
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.posted = n.tryRun
	return n
}

func newRand() *rand.Rand {
	var seed [32]byte
	_, _ = cryptorand.Read(seed[:]) // never fails
	return rand.New(rand.NewChaCha8(seed))
}

// sendFrame sends a frame of a session with a node.
func (n *Node) sendFrame(to string, f []byte) {
	n.transport.Send(to, transport.Message{Group: n.group(), Payload: f})
}

// group is the number of the frames of sessions in the transport.
func (n *Node) group() uint64 { return transport.GroupID(n.settings.Topology, "cluster/session") }

// start begins to run the core.
func (n *Node) start() {
	n.done = make(chan struct{})
	n.timer = time.AfterFunc(time.Hour, n.awake)
	n.running.Lock()
	n.started = true
	n.running.Unlock()
	n.awake()
	go n.loop()
}

// loop runs the core until ctx ends.
func (n *Node) loop() {
	defer close(n.done)
	for {
		select {
		case <-n.wake:
			n.running.Lock()
			n.step()
			n.running.Unlock()
			n.runAgain()
		case <-n.ctx.Done():
			n.running.Lock()
			n.started = false
			n.timer.Stop()
			n.running.Unlock()
			return
		}
	}
}

// tryRun runs the core unless another goroutine does. That one looks at the mailbox again
// before it stops.
func (n *Node) tryRun() {
	if !n.running.TryLock() {
		return
	}
	if n.started {
		n.step()
	}
	n.running.Unlock()
	n.runAgain()
}

// runAgain makes the goroutine of the node run the core if the mailbox was filled while
// the core was running.
func (n *Node) runAgain() {
	n.mu.Lock()
	busy := n.busy
	n.mu.Unlock()
	if busy {
		n.awake()
	}
}

// step empties the mailbox and runs the core. The caller holds running.
func (n *Node) step() {
	var h happened
	n.take(&h)
	now := time.Since(n.began)
	if n.fence.gate != nil {
		n.fence.gate.LookAtGate() // this process may have been stopped
	}
	n.core.step(now, &h)
	if at, ok := n.core.next(); ok {
		n.timer.Reset(max(at-now, 0))
	} else {
		n.timer.Stop()
	}
}

// proposePause is the time before a transaction is repeated that has failed.
const proposePause = 100 * time.Millisecond

// propose implements the proposals of the core. The table waits for its engine, so only the
// end of the node or of the table ends a proposal without a result.
func (n *Node) propose(p proposal) {
	n.proposals.Go(func() {
		for n.ctx.Err() == nil {
			_, err := n.table.Txn(n.ctx, p.guards, []table.Change{p.agree})
			if err == nil || errors.Is(err, table.ErrGuard) {
				n.post(func(h *happened) { h.proposed = append(h.proposed, proposed{p, err == nil}) })
				return
			}
			select {
			case <-time.After(proposePause):
			case <-n.table.Done(): // watch ends the node
				return
			case <-n.ctx.Done():
			}
		}
	})
}
