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
	incomingIdleTimeouts = 10                // election timeouts after which an incoming snapshot without new parts is removed
)

// snapshotter sends the bodies of snapshots to peers, receives bodies from peers, and
// completes the snapshots of this node. It has its own goroutine, because it reads and
// writes files and decodes states.
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
// incoming snapshot that the node's loop has handled, or complete a snapshot of this node.
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

// put queues a job. A job of a peer is dropped if too many wait. It returns false if the
// job is dropped.
func (s *snapshotter) put(e job) bool {
	ofPeer := e.part != nil || e.receipt != nil
	s.mu.Lock()
	if s.err != nil || ofPeer && s.peerJobs >= peerJobsMax {
		s.mu.Unlock()
		return false
	}
	if ofPeer {
		s.peerJobs++
	}
	s.jobs = append(s.jobs, e)
	s.mu.Unlock()
	s.active.Store(true)
	s.wakeUp()
	return true
}

// tick passes the state of the loop to the snapshotter. While a snapshot is decoded, tick
// sends receipts to its sender, so that the transfer does not fail.
func (s *snapshotter) tick(now loopState) {
	s.mu.Lock()
	s.latest = now // the next transfer must begin with the current time, even after a long idle time
	busy := s.busy
	s.mu.Unlock()
	if !s.active.Load() {
		return
	}
	if busy != nil {
		s.sendReceipt(busy.name, &receipt{transfer: busy.transfer, received: busy.size})
	}
	s.wakeUp()
}

func (s *snapshotter) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run is the snapshotter's goroutine. If the user's code ends the goroutine while it
// writes or reads a state, the node stops, and another goroutine closes the files.
func (s *snapshotter) run() {
	ended := false
	defer func() {
		if ended {
			close(s.ended)
			return
		}
		err := fmt.Errorf("raft: a snapshot: %w", errGoexit)
		s.node.fail(err)
		s.close(err)
		go s.run()
	}()
	for range s.wake {
		if !s.runOnce() {
			break
		}
	}
	ended = true
}

// close stops the snapshotter from starting further jobs.
func (s *snapshotter) close(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	s.wakeUp()
}

// runOnce does the jobs that wait. It returns false when the snapshotter is closed.
func (s *snapshotter) runOnce() bool {
	s.mu.Lock()
	list, err := s.jobs, s.err
	s.jobs, s.peerJobs = nil, 0
	ticked := s.latest != s.now
	s.now = s.latest
	s.mu.Unlock()
	if err != nil {
		s.closeFiles()
		for _, e := range list {
			switch {
			case e.finished != nil:
				e.finished.end()
			case e.write != nil:
				e.write.abort()
			}
		}
		return false
	}
	for i := range list {
		s.do(&list[i])
	}
	if ticked {
		s.checkTimeouts()
	}
	s.publish()
	return true
}

func (s *snapshotter) do(e *job) {
	switch {
	case e.message != nil:
		s.startSending(e)
	case e.receipt != nil:
		s.takeReceipt(e)
	case e.part != nil:
		s.takePart(e)
	case e.finished != nil:
		s.finishIncoming(e)
	case e.write != nil:
		e.write.complete(s.machine)
		s.node.finishSnapshot(e.write)
	}
}

// closeFiles closes the files of all transfers, and removes the transfers.
func (s *snapshotter) closeFiles() {
	for _, to := range slices.Sorted(maps.Keys(s.outgoing)) {
		s.remove(s.outgoing[to])
	}
	if s.incoming != nil {
		s.incoming.end()
		s.incoming = nil
	}
}

// publish updates the transfers for Status.
func (s *snapshotter) publish() {
	sending := make(map[uint64]Transfer, len(s.outgoing))
	for to, d := range s.outgoing {
		t := Transfer{Index: d.index(), Size: int64(d.size), Came: int64(d.acknowledged)}
		if d.failed != nil {
			t.Error = d.failed.Error()
		}
		sending[to] = t
	}
	s.mu.Lock()
	s.sending = sending
	s.active.Store(len(s.outgoing) > 0 || s.incoming != nil || len(s.jobs) > 0)
	s.mu.Unlock()
}

// transfer returns the snapshot that is being sent to a peer, or nil.
func (s *snapshotter) transfer(to uint64) *Transfer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.sending[to]; ok {
		return &t
	}
	return nil
}

// checkTimeouts does the work of a tick.
func (s *snapshotter) checkTimeouts() {
	timeout := int64(s.node.core.config.ElectionTicks)
	for _, to := range slices.Sorted(maps.Keys(s.outgoing)) { // in a fixed order, so that simulations are reproducible
		d := s.outgoing[to]
		switch {
		case s.now.tick > d.messageTick && (!s.now.leads || d.message.GetTerm() != s.now.term): // not at the same tick: the node may have become leader since
			s.remove(d) // another node leads, or the engine starts again
		case d.failed != nil && s.now.tick >= d.retryTick:
			s.report(d, false)
		case d.failed != nil:
		default:
			if err := d.resendOverdue(s.now.tick, timeout); err != nil {
				s.fail(d, err)
				continue
			}
			s.send(d)
		}
	}
	if a := s.incoming; a != nil && !a.decoding && s.now.tick-a.progressTick > incomingIdleTimeouts*timeout {
		a.end()
		s.incoming = nil
	}
}

// startSending starts to send a snapshot. If the same snapshot is already being sent, the
// transfer continues.
func (s *snapshotter) startSending(e *job) {
	index := e.message.GetSnapshot().GetMetadata().GetIndex()
	transfer := s.node.core.config.Nonce + index
	text, err := proto.Marshal(e.message)
	d := s.outgoing[e.id]
	if d != nil && d.transfer == transfer && d.failed == nil && err == nil {
		d.message, d.messageTick, d.messageBytes, d.name = e.message, e.tick, text, cmp.Or(e.name, d.name)
		return
	}
	if d != nil {
		s.remove(d)
	}
	d = &outgoingSnapshot{to: e.id, name: e.name, message: e.message, messageTick: e.tick, messageBytes: text, log: e.log}
	d.transfer, d.bytes, d.progressTick = transfer, s.partBytes, s.now.tick
	s.outgoing[e.id] = d
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
		s.fail(d, err)
		return
	}
	s.send(d)
}

// open opens the body at its beginning.
func (o *outgoingSnapshot) open() error {
	body, size, err := openBody(o.log, o.index())
	if err != nil {
		return err
	}
	o.bodySender = bodySender{transfer: o.transfer, bytes: o.bytes, progressTick: o.progressTick, size: uint64(size), body: body}
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

func (o *outgoingSnapshot) index() uint64 { return o.message.GetSnapshot().GetMetadata().GetIndex() }

// send sends the parts that may be sent now.
func (s *snapshotter) send(d *outgoingSnapshot) {
	err := d.sendParts(func(p *part) {
		n := s.node
		b := p.append(envelope{kindPart, n.groupID.Load(), n.core.id}.append(nil), d.messageBytes)
		n.config.Transport.Send(d.name, transport.Message{Group: n.config.Group, Payload: b, Class: classOf(pb.MsgSnap)})
	})
	if err != nil {
		s.fail(d, err)
	}
}

// takeReceipt handles the receipt of a peer.
func (s *snapshotter) takeReceipt(e *job) {
	d := s.outgoing[e.id]
	if d == nil || d.failed != nil {
		return
	}
	d.name = e.name
	err := d.takeReceipt(e.receipt, s.now.tick)
	if errors.Is(err, errReceiverLost) { // the receiver has restarted
		_ = d.body.Close()
		d.body = nil
		d.progressTick = s.now.tick
		err = d.open()
	}
	switch {
	case err != nil:
		s.fail(d, err)
	case d.complete:
		s.node.logger.Info("raft: a snapshot was sent", slog.String("peer", d.name), slog.Uint64("index", d.index()), slog.Uint64("bytes", d.size))
		s.report(d, true)
	default:
		s.send(d)
	}
}

// fail ends a transfer. The engine gets this result later, because it would start the
// next transfer at once.
func (s *snapshotter) fail(d *outgoingSnapshot, err error) {
	n := s.failures[d.to]
	s.failures[d.to] = min(n+1, retriesMax)
	d.failed, d.retryTick = err, s.now.tick+int64(s.node.core.config.ElectionTicks)<<n
	s.node.logger.Error("raft: sending a snapshot to a member failed; the member gets no updates until it has the snapshot",
		slog.String("peer", d.name), slog.Uint64("index", d.index()), slog.Uint64("bytes", d.size), slog.Any("error", err))
}

// report passes the result of a snapshot to the engine.
func (s *snapshotter) report(d *outgoingSnapshot, ok bool) {
	if ok {
		delete(s.failures, d.to)
	}
	s.remove(d)
	to := d.to
	_ = s.node.put(func(b *inbox) {
		b.calls = append(b.calls, func(core *Core) { core.ReportSnapshot(to, ok) })
	})
}

func (s *snapshotter) remove(d *outgoingSnapshot) {
	if d.body != nil {
		_ = d.body.Close() // it was only read
		d.body = nil
	}
	delete(s.outgoing, d.to)
}

// sendReceipt sends a receipt.
func (s *snapshotter) sendReceipt(name string, r *receipt) {
	n := s.node
	b := r.append(envelope{kindReceipt, n.groupID.Load(), n.core.id}.append(nil))
	n.config.Transport.Send(name, transport.Message{Group: n.config.Group, Payload: b, Class: transport.Ordered})
}

// takePart handles a part of a peer's snapshot. The node's loop has checked the message
// in the part.
func (s *snapshotter) takePart(e *job) {
	p, a := e.part, s.incoming
	again := a != nil && a.state == receiptRefused && p.offset == 0 // the sender tries again
	if again || a == nil || a.from != e.id || a.transfer != p.transfer || a.size != p.size {
		if p.offset != 0 {
			s.sendReceipt(e.name, &receipt{transfer: p.transfer, state: receiptUnknown})
			return
		}
		if a = s.begin(e); a == nil {
			return
		}
	}
	a.name, a.progressTick = e.name, s.now.tick
	if !a.decoding && p.message.GetTerm() > a.message.GetTerm() {
		a.message = p.message // the sender leads in a newer term
	}
	if all, err := a.write(p); err != nil {
		s.refuse(a, err)
	} else if all {
		s.decode(a)
	}
	if s.incoming == a {
		s.sendReceipt(a.name, a.receipt())
	}
}

// begin starts to receive a snapshot, unless a snapshot from another sender is in
// progress.
func (s *snapshotter) begin(e *job) *incomingSnapshot {
	p := e.part
	if a := s.incoming; a != nil {
		timeout := 2 * int64(s.node.core.config.ElectionTicks)
		if a.decoding || a.body != nil && a.from != e.id && p.message.GetTerm() <= a.message.GetTerm() && s.now.tick-a.progressTick < timeout {
			return nil
		}
		a.end()
	}
	s.incoming = &incomingSnapshot{from: e.id, name: e.name, transfer: p.transfer, message: p.message, size: p.size, log: e.log}
	if err := s.incoming.create(); err != nil {
		s.refuse(s.incoming, err)
	}
	return s.incoming
}

// decode decodes a complete snapshot, and passes it to the node's loop.
func (s *snapshotter) decode(a *incomingSnapshot) {
	a.decoding = true
	s.setBusy(a)
	err := a.decode(s.machine)
	s.setBusy(nil)
	if err == nil {
		err = s.node.put(func(b *inbox) { b.calls = append(b.calls, func(*Core) { s.node.stepSnapshot(a) }) })
	}
	if err != nil {
		a.decoding = false
		s.refuse(a, err)
		if errors.Is(err, fsm.ErrIncompatible) { // stop the node, so that a newer program can be started and receive the snapshot
			s.node.fail(err)
		}
	}
}

// refuse rejects an incoming snapshot with an error for the sender, and logs the error. The
// sender tries again after at least one election timeout.
func (s *snapshotter) refuse(a *incomingSnapshot, err error) {
	a.refuse(err)
	s.node.logger.Error("raft: this node refuses the snapshot of the leader", slog.String("peer", a.name), slog.Uint64("index", a.index()), slog.Any("error", err))
}

func (s *snapshotter) setBusy(a *incomingSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy = nil; a != nil {
		s.busy = &incomingSnapshot{name: a.name, transfer: a.transfer, size: a.size}
	}
}

// finishIncoming ends an incoming snapshot that the node's loop has handled. If the
// engine skipped the snapshot, the snapshot is removed. A sender that still leads starts
// the transfer again.
func (s *snapshotter) finishIncoming(e *job) {
	a := e.finished
	a.decoding = false
	switch {
	case e.refusal != nil:
		s.refuse(a, e.refusal)
	case e.skipped:
		a.state = receiptUnknown
		a.end()
		s.incoming = nil
	default:
		a.state = receiptComplete
		a.end()
	}
	s.sendReceipt(a.name, a.receipt())
}
