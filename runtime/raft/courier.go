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
	errandsMax  = 4 * partsOnTheWay // of peers that wait for the courier; more are dropped, and sent again
	idleElected = 10                // election timeouts after which an arrival without parts is given up
)

// courier carries the bodies of snapshots to peers, takes those that come, and writes
// states that are frozen. It runs beside the node's loop, since it reads and writes files,
// and decodes.
type courier struct {
	node    *Node
	machine StateMachine
	bytes   int // of a part
	wake    chan struct{}
	ended   chan struct{} // closed when it does nothing any more
	active  atomic.Bool   // it is to do what is due at ticks

	mu      sync.Mutex
	errands []errand
	peers   int // errands of peers among them
	time    moment
	err     error // no errand begins any more
	busy    *arrival
	sending map[uint64]Transfer // for Status

	// The courier's alone:
	now       moment
	shipments map[uint64]*delivery
	failures  map[uint64]int // of snapshots to a peer, in a row
	arrival   *arrival
}

// moment is what the courier knows of the node's loop.
type moment struct {
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
type delivery struct {
	shipment
	to      uint64
	name    string
	message *pb.Message
	asked   int64  // tick of message
	text    []byte // of message
	log     wal.Log
	failed  error
	until   int64 // tick until when the engine is not told of that
}

// errand is one of: a snapshot to be sent, a part that has come, a receipt that has come,
// an arrival that the node's loop has taken, and a snapshot to be written.
type errand struct {
	id      uint64 // of the peer
	name    string // of the peer
	log     wal.Log
	message *pb.Message // to be sent
	tick    int64       // of message: when it was given to the courier
	part    *part
	receipt *receipt
	landed  *arrival
	refused error // of landed: why it was not taken
	passed  bool  // of landed: it was not taken, and may be in another term
	taking  *taking
}

func newCourier(n *Node, machine StateMachine) *courier {
	return &courier{
		node: n, machine: machine, bytes: partBytes, wake: make(chan struct{}, 1), ended: make(chan struct{}),
		shipments: map[uint64]*delivery{}, failures: map[uint64]int{},
	}
}

// put adds an errand. Those of peers are dropped where too many wait.
func (c *courier) put(e errand) {
	ofPeer := e.part != nil || e.receipt != nil
	c.mu.Lock()
	if ofPeer && c.peers >= errandsMax {
		c.mu.Unlock()
		return
	}
	if ofPeer {
		c.peers++
	}
	c.errands = append(c.errands, e)
	c.mu.Unlock()
	c.active.Store(true)
	c.awake()
}

// tick tells the time. While the courier is busy, its peer is told that it is.
func (c *courier) tick(now moment) {
	c.mu.Lock()
	c.time = now // what comes next begins now, however long there was nothing to do
	busy := c.busy
	c.mu.Unlock()
	if !c.active.Load() {
		return
	}
	if busy != nil {
		c.answer(busy.name, &receipt{transfer: busy.transfer, came: busy.size})
	}
	c.awake()
}

func (c *courier) awake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run is the courier's goroutine. Where the user's code has ended it, as it wrote or read a
// state, the node ends, and another goroutine lets go of the files.
func (c *courier) run() {
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
		if !c.turn() {
			break
		}
	}
	ended = true
}

// close has no other errand begin.
func (c *courier) close(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.awake()
}

// turn does what waits. It returns false when the courier is closed.
func (c *courier) turn() bool {
	c.mu.Lock()
	list, err := c.errands, c.err
	c.errands, c.peers = nil, 0
	ticked := c.time != c.now
	c.now = c.time
	c.mu.Unlock()
	if err != nil {
		c.drop()
		for _, e := range list {
			if e.landed != nil {
				e.landed.end()
			}
		}
		return false
	}
	for i := range list {
		c.do(&list[i])
	}
	if ticked {
		c.look()
	}
	c.publish()
	return true
}

func (c *courier) do(e *errand) {
	switch {
	case e.message != nil:
		c.ship(e)
	case e.receipt != nil:
		c.takeReceipt(e)
	case e.part != nil:
		c.takePart(e)
	case e.landed != nil:
		c.landed(e)
	case e.taking != nil:
		e.taking.do()
		c.node.snapshotTaken(e.taking)
	}
}

// drop lets go of all files.
func (c *courier) drop() {
	for _, to := range slices.Sorted(maps.Keys(c.shipments)) {
		c.forget(c.shipments[to])
	}
	if c.arrival != nil {
		c.arrival.end()
		c.arrival = nil
	}
}

// publish shows what is on its way.
func (c *courier) publish() {
	sending := make(map[uint64]Transfer, len(c.shipments))
	for to, d := range c.shipments {
		t := Transfer{Index: d.index(), Size: int64(d.size), Came: int64(d.came)}
		if d.failed != nil {
			t.Error = d.failed.Error()
		}
		sending[to] = t
	}
	c.mu.Lock()
	c.sending = sending
	c.active.Store(len(c.shipments) > 0 || c.arrival != nil || len(c.errands) > 0)
	c.mu.Unlock()
}

// transfer is the snapshot that is on its way to a peer; nil: none is.
func (c *courier) transfer(to uint64) *Transfer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.sending[to]; ok {
		return &t
	}
	return nil
}

// look does what is due at a tick.
func (c *courier) look() {
	patience := int64(c.node.core.config.ElectionTicks)
	for _, to := range slices.Sorted(maps.Keys(c.shipments)) { // a run is to be the same again
		d := c.shipments[to]
		switch {
		case c.now.tick > d.asked && (!c.now.leads || d.message.GetTerm() != c.now.term): // not before: the node may lead since the tick
			c.forget(d) // another leads, or the engine begins again
		case d.failed != nil && c.now.tick >= d.until:
			c.report(d, false)
		case d.failed != nil:
		default:
			if err := d.late(c.now.tick, patience); err != nil {
				c.fail(d, err)
				continue
			}
			c.send(d)
		}
	}
	if a := c.arrival; a != nil && !a.decoding && c.now.tick-a.moved > idleElected*patience {
		a.end()
		c.arrival = nil
	}
}

// ship begins to send a snapshot. One that is on its way already goes on.
func (c *courier) ship(e *errand) {
	index := e.message.GetSnapshot().GetMetadata().GetIndex()
	transfer := c.node.core.config.Nonce + index
	text, err := proto.Marshal(e.message)
	d := c.shipments[e.id]
	if d != nil && d.transfer == transfer && d.failed == nil && err == nil {
		d.message, d.asked, d.text, d.name = e.message, e.tick, text, cmp.Or(e.name, d.name)
		return
	}
	if d != nil {
		c.forget(d)
	}
	d = &delivery{to: e.id, name: e.name, message: e.message, asked: e.tick, text: text, log: e.log}
	d.transfer, d.bytes, d.moved = transfer, c.bytes, c.now.tick
	c.shipments[e.id] = d
	if err == nil && len(text) > messageMax {
		err = errors.New("the message of the snapshot is too large")
	}
	if err == nil && d.name == "" {
		err = errors.New("it is not known where the member is")
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
func (d *delivery) open() error {
	body, size, err := openBody(d.log, d.index())
	if err != nil {
		return err
	}
	d.shipment = shipment{transfer: d.transfer, bytes: d.bytes, moved: d.moved, size: uint64(size), body: body}
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

func (d *delivery) index() uint64 { return d.message.GetSnapshot().GetMetadata().GetIndex() }

// send sends the parts that may go.
func (c *courier) send(d *delivery) {
	err := d.parts(func(p *part) {
		n := c.node
		b := p.append(envelope{kindPart, n.groupID.Load(), n.core.id}.append(nil), d.text)
		n.config.Transport.Send(d.name, transport.Message{Group: n.config.Group, Payload: b, Class: classOf(pb.MsgSnap)})
	})
	if err != nil {
		c.fail(d, err)
	}
}

// takeReceipt takes the answer of a peer.
func (c *courier) takeReceipt(e *errand) {
	d := c.shipments[e.id]
	if d == nil || d.failed != nil {
		return
	}
	d.name = e.name
	err := d.receipt(e.receipt, c.now.tick)
	if errors.Is(err, errUnknown) { // it was started again
		_ = d.body.Close()
		d.body = nil
		d.moved = c.now.tick
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
func (c *courier) fail(d *delivery, err error) {
	n := c.failures[d.to]
	c.failures[d.to] = min(n+1, retriesMax)
	d.failed, d.until = err, c.now.tick+int64(c.node.core.config.ElectionTicks)<<n
	c.node.logger.Error("raft: a snapshot does not reach a member, which lacks all updates until it does",
		slog.String("peer", d.name), slog.Uint64("index", d.index()), slog.Uint64("bytes", d.size), slog.Any("error", err))
}

// report tells the engine what became of a snapshot.
func (c *courier) report(d *delivery, ok bool) {
	if ok {
		delete(c.failures, d.to)
	}
	c.forget(d)
	to := d.to
	_ = c.node.put(func(b *inbox) {
		b.calls = append(b.calls, func(core *Core) { core.ReportSnapshot(to, ok) })
	})
}

func (c *courier) forget(d *delivery) {
	if d.body != nil {
		_ = d.body.Close() // it was read
		d.body = nil
	}
	delete(c.shipments, d.to)
}

// answer sends a receipt.
func (c *courier) answer(name string, r *receipt) {
	n := c.node
	b := r.append(envelope{kindReceipt, n.groupID.Load(), n.core.id}.append(nil))
	n.config.Transport.Send(name, transport.Message{Group: n.config.Group, Payload: b, Class: transport.Ordered})
}

// takePart takes a part of a snapshot of a peer's, whose message the node's loop has
// checked.
func (c *courier) takePart(e *errand) {
	p, a := e.part, c.arrival
	again := a != nil && a.state == receiptRefused && p.offset == 0 // its sender tries again
	if again || a == nil || a.from != e.id || a.transfer != p.transfer || a.size != p.size {
		if p.offset != 0 {
			c.answer(e.name, &receipt{transfer: p.transfer, state: receiptUnknown})
			return
		}
		if a = c.begin(e); a == nil {
			return
		}
	}
	a.name, a.moved = e.name, c.now.tick
	if !a.decoding && p.message.GetTerm() > a.message.GetTerm() {
		a.message = p.message // its sender leads in another term
	}
	if a.take(p) {
		c.decode(a)
	}
	if c.arrival == a {
		c.answer(a.name, a.receipt())
	}
}

// begin begins an arrival, unless one of another sender goes on.
func (c *courier) begin(e *errand) *arrival {
	p := e.part
	if a := c.arrival; a != nil {
		patience := 2 * int64(c.node.core.config.ElectionTicks)
		if a.decoding || a.body != nil && a.from != e.id && p.message.GetTerm() <= a.message.GetTerm() && c.now.tick-a.moved < patience {
			return nil
		}
		a.end()
	}
	c.arrival = &arrival{from: e.id, name: e.name, transfer: p.transfer, message: p.message, size: p.size, log: e.log}
	c.arrival.begin()
	return c.arrival
}

// decode decodes what has come, and hands it to the node's loop.
func (c *courier) decode(a *arrival) {
	a.decoding = true
	c.setBusy(a)
	err := a.decode(c.machine)
	c.setBusy(nil)
	if err == nil {
		err = c.node.put(func(b *inbox) { b.calls = append(b.calls, func(*Core) { c.node.arrived(a) }) })
	}
	if err != nil {
		a.decoding = false
		a.refuse(err)
		if errors.Is(err, fsm.ErrIncompatible) { // another program is to be started, and to get it
			c.node.fail(err)
		}
		c.node.logger.Error("raft: a snapshot of the leader is refused", slog.String("peer", a.name), slog.Uint64("index", a.index()), slog.Any("error", err))
	}
}

func (c *courier) setBusy(a *arrival) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy = nil; a != nil {
		c.busy = &arrival{name: a.name, transfer: a.transfer, size: a.size}
	}
}

// landed is told that the node's loop has taken an arrival, or does not need it. One that
// the engine has passed over is forgotten: its sender begins again if it still leads.
func (c *courier) landed(e *errand) {
	a := e.landed
	a.decoding = false
	switch {
	case e.refused != nil:
		a.refuse(e.refused)
	case e.passed:
		a.state = receiptUnknown
		a.end()
		c.arrival = nil
	default:
		a.state = receiptComplete
		a.end()
	}
	c.answer(a.name, a.receipt())
}
