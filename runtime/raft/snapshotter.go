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
	peerJobsMax          = 4 * partsOnTheWay // of peers that wait for the snapshotter; more are dropped, and sent again
	incomingIdleTimeouts = 10                // election timeouts after which an arrival without parts is given up
)

// snapshotter carries the bodies of snapshots to peers, takes those that come, and writes
// states that are frozen. It runs beside the node's loop, since it reads and writes files,
// and decodes.
type snapshotter struct {
	node      *Node
	machine   StateMachine
	partBytes int // of a part
	wake      chan struct{}
	ended     chan struct{} // closed when it does nothing any more
	active    atomic.Bool   // it is to do what is due at ticks

	mu       sync.Mutex
	jobs     []job
	peerJobs int // jobs of peers among them
	latest   loopState
	err      error // no job begins any more
	busy     *incomingSnapshot
	sending  map[uint64]Transfer // for Status

	// The snapshotter's alone:
	now      loopState
	outgoing map[uint64]*outgoingSnapshot
	failures map[uint64]int // of snapshots to a peer, in a row
	incoming *incomingSnapshot
}

// moment is what the snapshotter knows of the node's loop.
type loopState struct {
	tick  int64
	term  uint64
	leads bool
}

// Transfer is a snapshot on its way to a member.
type Transfer struct {
	Index uint64 // up to which the snapshot holds the log
	Size  int64  // bytes of the state
	Came  int64  // bytes of it that are known to have come
	Error string `json:",omitempty"` // why it has failed; it will be tried again
}

// delivery is a shipment, with what belongs to it.
type outgoingSnapshot struct {
	bodySender
	to           uint64
	name         string
	message      *pb.Message
	messageTick  int64  // tick of message
	messageBytes []byte // of message
	log          wal.Log
	failed       error
	retryTick    int64 // tick until when the engine is not told of that
}

// job is one of: a snapshot to be sent, a part that has come, a receipt that has come,
// an arrival that the node's loop has taken, and a snapshot to be written.
type job struct {
	id       uint64 // of the peer
	name     string // of the peer
	log      wal.Log
	message  *pb.Message // to be sent
	tick     int64       // of message: when it was given to the snapshotter
	part     *part
	receipt  *receipt
	finished *incomingSnapshot
	refusal  error // of landed: why it was not taken
	skipped  bool  // of landed: it was not taken, and may be in another term
	write    *snapshotWrite
}

func newSnapshotter(n *Node, machine StateMachine) *snapshotter {
	return &snapshotter{
		node: n, machine: machine, partBytes: partBytes, wake: make(chan struct{}, 1), ended: make(chan struct{}),
		outgoing: map[uint64]*outgoingSnapshot{}, failures: map[uint64]int{},
	}
}

// put adds an job. Those of peers are dropped where too many wait.
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

// tick tells the time. While the snapshotter is busy, its peer is told that it is.
func (c *snapshotter) tick(now loopState) {
	c.mu.Lock()
	c.latest = now // what comes next begins now, however long there was nothing to do
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

// run is the snapshotter's goroutine. Where the user's code has ended it, as it wrote or read a
// state, the node ends, and another goroutine lets go of the files.
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

// close has no other job begin.
func (c *snapshotter) close(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.wakeUp()
}

// turn does what waits. It returns false when the snapshotter is closed.
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

// drop lets go of all files.
func (c *snapshotter) closeFiles() {
	for _, to := range slices.Sorted(maps.Keys(c.outgoing)) {
		c.remove(c.outgoing[to])
	}
	if c.incoming != nil {
		c.incoming.end()
		c.incoming = nil
	}
}

// publish shows what is on its way.
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

// transfer is the snapshot that is on its way to a peer; nil: none is.
func (c *snapshotter) transfer(to uint64) *Transfer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.sending[to]; ok {
		return &t
	}
	return nil
}

// look does what is due at a tick.
func (c *snapshotter) checkTimeouts() {
	timeout := int64(c.node.core.config.ElectionTicks)
	for _, to := range slices.Sorted(maps.Keys(c.outgoing)) { // a run is to be the same again
		d := c.outgoing[to]
		switch {
		case c.now.tick > d.messageTick && (!c.now.leads || d.message.GetTerm() != c.now.term): // not before: the node may lead since the tick
			c.remove(d) // another leads, or the engine begins again
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

// ship begins to send a snapshot. One that is on its way already goes on.
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

// open opens the body, from its beginning.
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

// send sends the parts that may go.
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

// takeReceipt takes the answer of a peer.
func (c *snapshotter) takeReceipt(e *job) {
	d := c.outgoing[e.id]
	if d == nil || d.failed != nil {
		return
	}
	d.name = e.name
	err := d.takeReceipt(e.receipt, c.now.tick)
	if errors.Is(err, errReceiverLost) { // it was started again
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

// fail ends a shipment. The engine is told later, since it tries again at once.
func (c *snapshotter) fail(d *outgoingSnapshot, err error) {
	n := c.failures[d.to]
	c.failures[d.to] = min(n+1, retriesMax)
	d.failed, d.retryTick = err, c.now.tick+int64(c.node.core.config.ElectionTicks)<<n
	c.node.logger.Error("raft: sending a snapshot to a member failed; the member gets no updates until it has the snapshot",
		slog.String("peer", d.name), slog.Uint64("index", d.index()), slog.Uint64("bytes", d.size), slog.Any("error", err))
}

// report tells the engine what became of a snapshot.
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
		_ = d.body.Close() // it was read
		d.body = nil
	}
	delete(c.outgoing, d.to)
}

// answer sends a receipt.
func (c *snapshotter) sendReceipt(name string, r *receipt) {
	n := c.node
	b := r.append(envelope{kindReceipt, n.groupID.Load(), n.core.id}.append(nil))
	n.config.Transport.Send(name, transport.Message{Group: n.config.Group, Payload: b, Class: transport.Ordered})
}

// takePart takes a part of a snapshot of a peer's, whose message the node's loop has
// checked.
func (c *snapshotter) takePart(e *job) {
	p, a := e.part, c.incoming
	again := a != nil && a.state == receiptRefused && p.offset == 0 // its sender tries again
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
		a.message = p.message // its sender leads in another term
	}
	if a.write(p) {
		c.decode(a)
	}
	if c.incoming == a {
		c.sendReceipt(a.name, a.receipt())
	}
}

// begin begins an arrival, unless one of another sender goes on.
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

// decode decodes what has come, and hands it to the node's loop.
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
		if errors.Is(err, fsm.ErrIncompatible) { // another program is to be started, and to get it
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

// landed is told that the node's loop has taken an arrival, or does not need it. One that
// the engine has passed over is forgotten: its sender begins again if it still leads.
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
