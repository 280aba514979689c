package raft

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

const (
	peerJobsMax          = 4 * partsOnTheWay // jobs of peers that wait; further ones are dropped, and the peers send them again
	incomingIdleTimeouts = 10                // election timeouts after which an incoming snapshot without new parts is given up
)

// snapshotter sends the bodies of snapshots to peers, receives bodies from peers, and
// writes frozen states. It has its own goroutine, because it reads and writes files and
// decodes states.
type snapshotter struct {
	node      *Node
	machine   StateMachine
	partBytes int // size of a part
	wake      chan struct{}
	ended     chan struct{} // closed when the goroutine has ended
	active    atomic.Bool   // it has work to do at ticks

	mu       sync.Mutex
	jobs     []job
	peerJobs int // number of jobs of peers
	latest   loopState
	err      error               // set when no more jobs may begin
	busy     *incomingSnapshot   // the snapshot that is being decoded
	sending  map[uint64]Transfer // published for Status

	// Only the snapshotter's goroutine uses these:
	now      loopState
	outgoing map[uint64]*outgoingSnapshot
	failures map[uint64]int // consecutive failed snapshots, by peer
	incoming *incomingSnapshot
}

// loopState is the state of the node's loop that the snapshotter needs.
type loopState struct {
	tick  int64
	term  uint64
	leads bool
}

// Transfer is a snapshot that is being sent to a member.
type Transfer struct {
	Index uint64 // of the last entry that the snapshot covers
	Size  int64  // bytes of the state
	Came  int64  // bytes that the member has acknowledged
	Error string `json:",omitempty"` // why the transfer failed; it will be tried again
}

// outgoingSnapshot is a snapshot that is being sent to a peer.
type outgoingSnapshot struct {
	bodySender
	to           uint64
	name         string
	message      *pb.Message
	messageTick  int64  // tick at which the engine asked for message
	messageBytes []byte // encoded message
	log          wal.Log
	failed       error
	retryTick    int64 // tick at which the failure is reported to the engine
}

// job is one of five kinds: send a snapshot, take a part, take a receipt, finish an
// incoming snapshot that the node's loop has handled, or write a snapshot.
type job struct {
	id       uint64 // of the peer
	name     string // of the peer
	log      wal.Log
	message  *pb.Message // to send
	tick     int64       // tick at which message was passed to the snapshotter
	part     *part
	receipt  *receipt
	finished *incomingSnapshot
	refusal  error // of finished: why the snapshot was refused
	skipped  bool  // of finished: the engine did not take the snapshot, but may take it in another term
	write    *snapshotWrite
}

func newSnapshotter(n *Node, machine StateMachine) *snapshotter {
	return &snapshotter{
		node: n, machine: machine, partBytes: partBytes, wake: make(chan struct{}, 1), ended: make(chan struct{}),
		outgoing: map[uint64]*outgoingSnapshot{}, failures: map[uint64]int{},
	}
}

// put queues a job. Jobs of peers are dropped if too many wait.
func (c *snapshotter) put(e job) {
	ofPeer := e.part != nil || e.receipt != nil
	c.mu.Lock()
	if ofPeer && c.peerJobs >= peerJobsMax {
		c.mu.Unlock()
		return
	}
	if ofPeer {
		c.peerJobs++
	}
	c.jobs = append(c.jobs, e)
	c.mu.Unlock()
	c.active.Store(true)
	c.wakeUp()
}

// tick passes the state of the loop to the snapshotter. While a snapshot is decoded, tick
// sends receipts to its sender, so that the sender does not give up.
func (c *snapshotter) tick(now loopState) {
	c.mu.Lock()
	c.latest = now // the next transfer must begin with the current time, even after a long idle time
	busy := c.busy
	c.mu.Unlock()
	if !c.active.Load() {
		return
	}
	if busy != nil {
		c.sendReceipt(busy.name, &receipt{transfer: busy.transfer, received: busy.size})
	}
	c.wakeUp()
}

func (c *snapshotter) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run is the snapshotter's goroutine. If the user's code ends the goroutine while it
// writes or reads a state, the node stops, and another goroutine closes the files.
func (c *snapshotter) run() {
	ended := false
	defer func() {
		if ended {
			close(c.ended)
			return
		}
		err := fmt.Errorf("raft: a snapshot: %w", errGoexit)
		c.node.fail(err)
		c.close(err)
		go c.run()
	}()
	for range c.wake {
		if !c.runOnce() {
			break
		}
	}
	ended = true
}

// close prevents that further jobs begin.
func (c *snapshotter) close(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.wakeUp()
}

// runOnce does the jobs that wait. It returns false when the snapshotter is closed.
func (c *snapshotter) runOnce() bool {
	c.mu.Lock()
	list, err := c.jobs, c.err
	c.jobs, c.peerJobs = nil, 0
	ticked := c.latest != c.now
	c.now = c.latest
	c.mu.Unlock()
	if err != nil {
		c.closeFiles()
		for _, e := range list {
			if e.finished != nil {
				e.finished.end()
			}
		}
		return false
	}
	for i := range list {
		c.do(&list[i])
	}
	if ticked {
		c.checkTimeouts()
	}
	c.publish()
	return true
}

func (c *snapshotter) do(e *job) {
	switch {
	case e.message != nil:
		c.startSending(e)
	case e.receipt != nil:
		c.takeReceipt(e)
	case e.part != nil:
		c.takePart(e)
	case e.finished != nil:
		c.finishIncoming(e)
	case e.write != nil:
		e.write.run()
		c.node.finishSnapshot(e.write)
	}
}

// closeFiles closes and forgets all transfers.
func (c *snapshotter) closeFiles() {
	for _, to := range slices.Sorted(maps.Keys(c.outgoing)) {
		c.remove(c.outgoing[to])
	}
	if c.incoming != nil {
		c.incoming.end()
		c.incoming = nil
	}
}

// publish updates the transfers for Status.
func (c *snapshotter) publish() {
	sending := make(map[uint64]Transfer, len(c.outgoing))
	for to, d := range c.outgoing {
		t := Transfer{Index: d.index(), Size: int64(d.size), Came: int64(d.acknowledged)}
		if d.failed != nil {
			t.Error = d.failed.Error()
		}
		sending[to] = t
	}
	c.mu.Lock()
	c.sending = sending
	c.active.Store(len(c.outgoing) > 0 || c.incoming != nil || len(c.jobs) > 0)
	c.mu.Unlock()
}

// transfer returns the snapshot that is being sent to a peer, or nil.
func (c *snapshotter) transfer(to uint64) *Transfer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.sending[to]; ok {
		return &t
	}
	return nil
}

// checkTimeouts does the work of a tick.
func (c *snapshotter) checkTimeouts() {
	timeout := int64(c.node.core.config.ElectionTicks)
	for _, to := range slices.Sorted(maps.Keys(c.outgoing)) { // in a fixed order, so that simulations are reproducible
		d := c.outgoing[to]
		switch {
		case c.now.tick > d.messageTick && (!c.now.leads || d.message.GetTerm() != c.now.term): // not at the same tick: the node may have become leader since
			c.remove(d) // another node leads, or the engine starts again
		case d.failed != nil && c.now.tick >= d.retryTick:
			c.report(d, false)
		case d.failed != nil:
		default:
			if err := d.resendOverdue(c.now.tick, timeout); err != nil {
				c.fail(d, err)
				continue
			}
			c.send(d)
		}
	}
	if a := c.incoming; a != nil && !a.decoding && c.now.tick-a.progressTick > incomingIdleTimeouts*timeout {
		a.end()
		c.incoming = nil
	}
}

// startSending starts to send a snapshot. If the same snapshot is already being sent, the
// transfer continues.
func (c *snapshotter) startSending(e *job) {
	index := e.message.GetSnapshot().GetMetadata().GetIndex()
	transfer := c.node.core.config.Nonce + index
	text, err := proto.Marshal(e.message)
	d := c.outgoing[e.id]
	if d != nil && d.transfer == transfer && d.failed == nil && err == nil {
		d.message, d.messageTick, d.messageBytes, d.name = e.message, e.tick, text, cmp.Or(e.name, d.name)
		return
	}
	if d != nil {
		c.remove(d)
	}
	d = &outgoingSnapshot{to: e.id, name: e.name, message: e.message, messageTick: e.tick, messageBytes: text, log: e.log}
	d.transfer, d.bytes, d.progressTick = transfer, c.partBytes, c.now.tick
	c.outgoing[e.id] = d
	if err == nil && len(text) > messageMax {
		err = errors.New("the message of the snapshot is too large")
	}
	if err == nil && d.name == "" {
		err = errors.New("the address of the member is not known")
	}
	if err == nil {
		err = d.open()
	}
	if err != nil {
		c.fail(d, err)
		return
	}
	c.send(d)
}

// open opens the body at its beginning.
func (d *outgoingSnapshot) open() error {
	body, size, err := openBody(d.log, d.index())
	if err != nil {
		return err
	}
	d.bodySender = bodySender{transfer: d.transfer, bytes: d.bytes, progressTick: d.progressTick, size: uint64(size), body: body}
	return nil
}

// openBody opens the state of a snapshot in the log.
func openBody(log wal.Log, index uint64) (io.ReadCloser, int64, error) {
	r, err := log.OpenSnapshot(index)
	if err != nil {
		return nil, 0, err
	}
	if r.Size >= 0 {
		return r, r.Size, nil
	}
	_, state, err := readSnapshot(r.Snapshot.GetData())
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, 0, err
	}
	return io.NopCloser(bytes.NewReader(state)), int64(len(state)), nil
}

func (d *outgoingSnapshot) index() uint64 { return d.message.GetSnapshot().GetMetadata().GetIndex() }

// send sends the parts that may be sent now.
func (c *snapshotter) send(d *outgoingSnapshot) {
	err := d.sendParts(func(p *part) {
		n := c.node
		b := p.append(envelope{kindPart, n.groupID.Load(), n.core.id}.append(nil), d.messageBytes)
		n.config.Transport.Send(d.name, transport.Message{Group: n.config.Group, Payload: b, Class: classOf(pb.MsgSnap)})
	})
	if err != nil {
		c.fail(d, err)
	}
}

// takeReceipt handles the receipt of a peer.
func (c *snapshotter) takeReceipt(e *job) {
	d := c.outgoing[e.id]
	if d == nil || d.failed != nil {
		return
	}
	d.name = e.name
	err := d.takeReceipt(e.receipt, c.now.tick)
	if errors.Is(err, errReceiverLost) { // the receiver has restarted
		_ = d.body.Close()
		d.body = nil
		d.progressTick = c.now.tick
		err = d.open()
	}
	switch {
	case err != nil:
		c.fail(d, err)
	case d.complete:
		c.node.logger.Info("raft: a snapshot was sent", slog.String("peer", d.name), slog.Uint64("index", d.index()), slog.Uint64("bytes", d.size))
		c.report(d, true)
	default:
		c.send(d)
	}
}

// fail ends a transfer. The engine is informed later, because it would try again at once.
func (c *snapshotter) fail(d *outgoingSnapshot, err error) {
	n := c.failures[d.to]
	c.failures[d.to] = min(n+1, retriesMax)
	d.failed, d.retryTick = err, c.now.tick+int64(c.node.core.config.ElectionTicks)<<n
	c.node.logger.Error("raft: sending a snapshot to a member failed; the member gets no updates until it has the snapshot",
		slog.String("peer", d.name), slog.Uint64("index", d.index()), slog.Uint64("bytes", d.size), slog.Any("error", err))
}

// report tells the engine the result of a snapshot.
func (c *snapshotter) report(d *outgoingSnapshot, ok bool) {
	if ok {
		delete(c.failures, d.to)
	}
	c.remove(d)
	to := d.to
	_ = c.node.put(func(b *inbox) {
		b.calls = append(b.calls, func(core *Core) { core.ReportSnapshot(to, ok) })
	})
}

func (c *snapshotter) remove(d *outgoingSnapshot) {
	if d.body != nil {
		_ = d.body.Close() // it was only read
		d.body = nil
	}
	delete(c.outgoing, d.to)
}

// sendReceipt sends a receipt.
func (c *snapshotter) sendReceipt(name string, r *receipt) {
	n := c.node
	b := r.append(envelope{kindReceipt, n.groupID.Load(), n.core.id}.append(nil))
	n.config.Transport.Send(name, transport.Message{Group: n.config.Group, Payload: b, Class: transport.Ordered})
}

// takePart handles a part of a peer's snapshot. The node's loop has checked the message
// in the part.
func (c *snapshotter) takePart(e *job) {
	p, a := e.part, c.incoming
	again := a != nil && a.state == receiptRefused && p.offset == 0 // the sender tries again
	if again || a == nil || a.from != e.id || a.transfer != p.transfer || a.size != p.size {
		if p.offset != 0 {
			c.sendReceipt(e.name, &receipt{transfer: p.transfer, state: receiptUnknown})
			return
		}
		if a = c.begin(e); a == nil {
			return
		}
	}
	a.name, a.progressTick = e.name, c.now.tick
	if !a.decoding && p.message.GetTerm() > a.message.GetTerm() {
		a.message = p.message // the sender leads in a newer term
	}
	if a.write(p) {
		c.decode(a)
	}
	if c.incoming == a {
		c.sendReceipt(a.name, a.receipt())
	}
}

// begin starts to receive a snapshot, unless one from another sender is in progress.
func (c *snapshotter) begin(e *job) *incomingSnapshot {
	p := e.part
	if a := c.incoming; a != nil {
		timeout := 2 * int64(c.node.core.config.ElectionTicks)
		if a.decoding || a.body != nil && a.from != e.id && p.message.GetTerm() <= a.message.GetTerm() && c.now.tick-a.progressTick < timeout {
			return nil
		}
		a.end()
	}
	c.incoming = &incomingSnapshot{from: e.id, name: e.name, transfer: p.transfer, message: p.message, size: p.size, log: e.log}
	c.incoming.create()
	return c.incoming
}

// decode decodes a complete snapshot, and passes it to the node's loop.
func (c *snapshotter) decode(a *incomingSnapshot) {
	a.decoding = true
	c.setBusy(a)
	err := a.decode(c.machine)
	c.setBusy(nil)
	if err == nil {
		err = c.node.put(func(b *inbox) { b.calls = append(b.calls, func(*Core) { c.node.stepSnapshot(a) }) })
	}
	if err != nil {
		a.decoding = false
		a.refuse(err)
		if errors.Is(err, fsm.ErrIncompatible) { // stop the node, so that a newer program can be started and receive the snapshot
			c.node.fail(err)
		}
		c.node.logger.Error("raft: this node refuses the snapshot of the leader", slog.String("peer", a.name), slog.Uint64("index", a.index()), slog.Any("error", err))
	}
}

func (c *snapshotter) setBusy(a *incomingSnapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy = nil; a != nil {
		c.busy = &incomingSnapshot{name: a.name, transfer: a.transfer, size: a.size}
	}
}

// finishIncoming ends an incoming snapshot that the node's loop has handled. If the
// engine skipped the snapshot, it is forgotten, and a sender that still leads starts
// again.
func (c *snapshotter) finishIncoming(e *job) {
	a := e.finished
	a.decoding = false
	switch {
	case e.refusal != nil:
		a.refuse(e.refusal)
	case e.skipped:
		a.state = receiptUnknown
		a.end()
		c.incoming = nil
	default:
		a.state = receiptComplete
		a.end()
	}
	c.sendReceipt(a.name, a.receipt())
}
