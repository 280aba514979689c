package border

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/piper"
)

// guest is an instance of another node that sends to instances of this one. It has a
// unit and a sender, so its messages travel through links and queues like those of the
// instances of this node. Its turns decode what has arrived.
type guest struct {
	border *Border
	node   atomic.Pointer[string]
	unit   *piper.Unit
	of     arriver
	links  map[[2]int]*Arrivals // by receiving processor and instance

	pending      []arrived // owned by the unit's worker
	firstPending int       // index of the oldest element of pending

	mu      sync.Mutex
	inbox   []arrived
	waiting atomic.Int32 // number of elements of inbox and pending
}

// arriver is the generated part of a guest. Arrive decodes a message of an edge and puts
// it into the queue to an instance. Link makes the link to an instance.
type arriver interface {
	Link(processor, instance int)
	Arrive(edge, to int, b []byte, reply ReplyTo) error
}

// arrived is a chunk that was not decoded yet.
type arrived struct {
	a    *Arrivals
	data []byte
	edge int
	skip int // messages to leave out

	process uint64 // that has sent it
}

// Arrivals is the beginning of a link whose sending instance runs on another node.
type Arrivals struct {
	Pair
	State any // belongs to Nodes

	// Limit is how many messages of the pair may be in the queues of this node. A correct node sends
	// more before some of them are handled only if it was restarted, has dropped messages
	// after retry.timeout, or sends that many in one handler call. There is no limit of their bytes: a correct
	// node may send so many messages of the largest size, so nodes trust each other with memory (SECURITY.md).
	Limit uint64
	// Capacity is the smallest capacity of the edges of the pair. The sending instance may
	// have to wait while so many messages are not confirmed.
	Capacity int

	guest    *guest
	counts   *perInstance // nil unless some messages go to one of several instances
	entered  uint64       // number of messages that entered a queue; owned by the guest
	lost     lostMessages
	reported []atomic.Uint64 // by receiving instance: number of handled messages
}

// ReplyTo sends the reply to a message that has arrived. It is nil if no caller waits
// for the reply. It may be called from any goroutine, at most once.
type ReplyTo func(reply []byte, err error)

// GuestKey identifies an instance of another node.
type GuestKey struct {
	Node                string // or a name in its place, see SetNode
	Processor, Instance int
}

// SetNode sets the name of the node whose instance sends. A guest takes memory until the pool
// ends, so Nodes uses those of a node that has left for another one. All messages of the former
// node must have been handled.
func (a *Arrivals) SetNode(name string) { a.guest.node.Store(&name) }

// ErrAway is the error of Arrivals for an instance that this node does not run.
var ErrAway = errors.New("the instance is on another node")

// Arrivals makes the beginning of a link from an instance of another node to an instance
// of this one. It must not be called twice for the same pair. It returns ErrAway for an
// instance of another node.
func (b *Border) Arrivals(from GuestKey, to, instance int) (*Arrivals, error) {
	switch {
	case from.Processor < 0 || from.Processor >= b.Processors() || to < 0 || to >= b.Processors():
		return nil, errors.New("there is no such processor")
	case instance == OnAllOthers && b.Processor(to).Others:
	case instance < 0 || instance >= b.Instances(to):
		return nil, fmt.Errorf("%s has no instance %d", b.Processor(to).Name, instance)
	case from.Instance < 0 || from.Instance >= max(1, b.Instances(from.Processor)):
		return nil, fmt.Errorf("%s has no instance %d", b.Processor(from.Processor).Name, from.Instance)
	}
	limit, capacity := b.pairLimits(from.Processor, to)
	switch {
	case limit == 0:
		return nil, fmt.Errorf("no edge leads from %s to %s", b.Processor(from.Processor).Name, b.Processor(to).Name)
	case instance != OnAllOthers && b.Units(to)[instance].IsRemote():
		return nil, fmt.Errorf("%w: instance %d of %s", ErrAway, instance, b.Processor(to).Name)
	}
	b.guestsMu.Lock()
	defer b.guestsMu.Unlock()
	g := b.guests[from]
	if g == nil {
		var err error
		if g, err = b.newGuest(from); err != nil {
			return nil, err
		}
		b.guests[from] = g
	}
	a := &Arrivals{Pair: Pair{from.Processor, from.Instance, to, instance}, Limit: limit, Capacity: capacity, guest: g}
	a.reported = make([]atomic.Uint64, 1)
	if instance == OnAllOthers {
		a.reported = make([]atomic.Uint64, b.Instances(to))
		if len(a.reported) > 1 && b.aims(a.From, a.To) {
			a.counts = &perInstance{ways: make([]way, len(a.reported))}
		}
	}
	g.mu.Lock()
	g.links[[2]int{to, instance}] = a
	g.mu.Unlock()
	return a, nil
}

// aims reports whether messages from one processor to another one go to one instance of
// those on every node.
func (b *Border) aims(from, to int) bool {
	for i := range b.Edges() {
		if e := b.Edge(i); e.Aimed && e.From == from && e.To == to {
			return true
		}
	}
	return false
}

// newGuest makes the unit and the sender of an instance of another node.
func (b *Border) newGuest(key GuestKey) (*guest, error) {
	proc := b.Processor(key.Processor)
	if proc.Guest == nil {
		return nil, fmt.Errorf("%s sends nothing to other nodes", proc.Name)
	}
	parts := proc.Guest()
	g := &guest{border: b, unit: parts.Unit, of: parts.Cell.(arriver), links: make(map[[2]int]*Arrivals)}
	g.node.Store(&key.Node)
	parts.Cell = g
	b.AddGuest(key.Processor, key.Instance, parts)
	return g, nil
}

// Link and Woken make a guest the Cell of its unit.
func (g *guest) Link(processor, i int) { g.of.Link(processor, i) }
func (g *guest) Woken() error          { return g.decodeAll() }

// arrivalsAt returns the Arrivals whose messages go to a unit.
func (g *guest) arrivalsAt(to *piper.Unit) *Arrivals {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.links[[2]int{to.Processor(), OnAllOthers}]; a != nil {
		return a
	}
	return g.links[[2]int{to.Processor(), to.Index()}]
}

// pairLimits returns Arrivals.Limit and Arrivals.Capacity for an instance of each of two
// processors. They are 0 if no edge leads from one to the other.
func (b *Border) pairLimits(from, to int) (limit uint64, capacity int) {
	for i := range b.Edges() {
		e := b.Edge(i)
		if e.From != from || e.To != to {
			continue
		}
		if limit == 0 || e.Capacity < capacity {
			capacity = e.Capacity
		}
		limit += b.QueueLimit(i)
	}
	return limit, capacity
}

// set records how many messages an instance has handled. It reports whether the number
// has changed.
func (a *Arrivals) set(instance int, n uint64) (changed bool) {
	if a.counts != nil {
		return a.counts.set(instance, n)
	}
	if a.ToInstance != OnAllOthers {
		instance = 0
	}
	return a.reported[instance].Swap(n) != n
}

// handled is the number of messages before the first one that some receiving instance has not
// handled. A message that entered no queue counts as handled.
func (a *Arrivals) handled() uint64 {
	n := uint64(0)
	if a.counts != nil {
		n = a.counts.handled()
	} else {
		n = a.reported[0].Load()
		for i := range a.reported[1:] {
			n = min(n, a.reported[i+1].Load())
		}
	}
	return n + a.lost.upTo(n)
}

// Call identifies a call of another node.
type Call struct {
	Process uint64 // that has asked, as it was given to Put
	Number  uint64
}

// Put passes a chunk that has arrived to its receiver. Any goroutine may call it. The
// data belongs to the pool. The first skip messages are left out. Process identifies the
// process that has sent the chunk, because the next one with its name uses the same numbers
// of calls.
func (a *Arrivals) Put(data []byte, skip int, process uint64) {
	g := a.guest
	if g.waiting.Add(1) > framesKept && len(data) < 2*chunkBytes {
		data = bytes.Clone(data)
	}
	g.mu.Lock()
	g.inbox = append(g.inbox, arrived{a: a, data: data, skip: skip, process: process})
	g.mu.Unlock()
	g.unit.Wake()
}

// framesKept is the number of chunks of a guest that may wait as parts of their frames. Further
// ones are copied, because a frame stays in memory as long as any of its chunks. Chunks of
// twice chunkBytes are seldom parts of frames.
const framesKept = 64

// arrivedKept is the room for chunks that a guest keeps when all are decoded. A guest with
// many receivers may have had many more, and there may be many guests.
const arrivedKept = 256

// decodeAll decodes the chunks that have arrived, in a turn of the guest. It stops when a
// queue is full, and after chunkBytes, so that the receivers handle and confirm these
// messages before the next ones are decoded.
func (g *guest) decodeAll() error {
	g.mu.Lock()
	g.pending = append(g.pending, g.inbox...)
	clear(g.inbox)
	if g.inbox = g.inbox[:0]; cap(g.inbox) > arrivedKept {
		g.inbox = nil
	}
	g.mu.Unlock()
	before := g.firstPending
	for bytes := 0; g.firstPending < len(g.pending) && bytes < chunkBytes; g.firstPending++ {
		in := &g.pending[g.firstPending]
		bytes += len(in.data)
		if !g.decode(in) {
			break
		}
		*in = arrived{}
	}
	g.waiting.Add(int32(before - g.firstPending)) // after their messages are in the queues
	switch {
	case g.firstPending == len(g.pending):
		g.firstPending = 0
		if g.pending = g.pending[:0]; cap(g.pending) > arrivedKept {
			g.pending = nil
		}
		return nil
	case g.firstPending > len(g.pending)/2: // not in each turn, because there may be many
		g.pending = slices.Delete(g.pending, 0, g.firstPending)
		g.firstPending = 0
	}
	g.unit.Wake() // goes on in another turn, when there is room
	return nil
}

// decode puts the messages of a chunk into their queues. It returns false if it stopped
// because a queue is full.
func (g *guest) decode(in *arrived) (whole bool) {
	for len(in.data) > 0 {
		if !g.unit.MaySend() {
			return false
		}
		g.decodeOne(in)
	}
	return true
}

// decodeOne puts the first message of a chunk into its queue.
func (g *guest) decodeOne(in *arrived) {
	edge, m, rest, err := cutMessage(in.data, in.edge)
	if err == nil {
		in.edge, in.data = edge, rest
		if in.skip > 0 {
			in.skip--
			return
		}
		err = g.arrive(in, edge, m)
	} else {
		in.data = nil // only a node with a fault sends such a chunk
	}
	if err != nil {
		g.refuse(in.a, edge, err)
	}
}

// cutMessage cuts the first message from a chunk.
func cutMessage(b []byte, edge int) (edgeOf int, m, rest []byte, err error) {
	length, n := binary.Uvarint(b)
	if n <= 0 {
		return edge, nil, nil, errTruncated
	}
	b = b[n:]
	if length&1 != 0 {
		e, n := binary.Uvarint(b)
		if n <= 0 || e > 1<<31 {
			return edge, nil, nil, errTruncated
		}
		edge, b = int(e), b[n:]
	}
	if length >>= 1; length > uint64(len(b)) {
		return edge, nil, nil, errTruncated
	}
	return edge, b[:length], b[length:], nil
}

var (
	errTruncated = errors.New("the message ends too early")
	errFinished  = errors.New("the processor has finished")
	errNoReply   = errors.New("the handler of another node returned no reply")
)

// arrive decodes one message.
func (g *guest) arrive(in *arrived, edge int, m []byte) error {
	a, b := in.a, g.border
	if edge < 0 || edge >= b.Edges() || b.Edge(edge).From != a.From || b.Edge(edge).To != a.To {
		return fmt.Errorf("the edge with index %d does not lead from %s to %s", edge, b.Processor(a.From).Name, b.Processor(a.To).Name)
	}
	first, end := a.ToInstance, a.ToInstance+1
	if first == OnAllOthers {
		first, end = 0, len(a.reported)
	}
	way := everyInstance
	if b.Edge(edge).Aimed {
		instance, n := binary.Uvarint(m)
		switch {
		case n <= 0:
			return errTruncated
		case a.ToInstance == OnAllOthers && instance >= uint64(len(a.reported)), a.ToInstance >= 0 && instance != uint64(a.ToInstance):
			return fmt.Errorf("%s has no instance %d on this node", b.Processor(a.To).Name, instance)
		}
		m, way = m[n:], int(instance)
		first, end = way, way+1
	}
	call := Call{Process: in.process}
	if b.Edge(edge).Reply {
		number, n := binary.Uvarint(m)
		if n <= 0 {
			return errTruncated
		}
		m, call.Number = m[n:], number
	}
	if g.isLate(a) {
		if reply := a.replyTo(call, first, way); reply != nil {
			reply(nil, errFinished)
		}
		return errFinished
	}
	if a.counts != nil {
		a.counts.add(way)
	}
	for i := first; i < end; i++ {
		reply := a.replyTo(call, i, way)
		if err := g.of.Arrive(edge, i, m, reply); err != nil {
			if reply != nil {
				reply(nil, err)
			}
			if a.counts != nil {
				a.counts.undo(way)
			}
			return err // of the first instance: all of them get the same bytes
		}
	}
	a.entered++
	return nil
}

// RefuseLate drops and counts the messages of other nodes that arrive after all groups have
// finished. No worker takes them any more, so their sending nodes would wait for their confirmation. Nodes
// calls it in End, and after each Put from then on.
func (b *Border) RefuseLate() {
	b.guestsMu.Lock()
	guests := slices.Collect(maps.Values(b.guests))
	b.guestsMu.Unlock()
	for _, g := range guests {
		if g.waiting.Load() == 0 {
			continue
		}
		g.mu.Lock()
		late := append(g.pending[g.firstPending:], g.inbox...)
		g.pending, g.firstPending, g.inbox = nil, 0, nil
		g.mu.Unlock()
		for i := range late {
			for len(late[i].data) > 0 {
				g.decodeOne(&late[i])
			}
		}
		g.waiting.Add(-int32(len(late)))
	}
}

// isLate reports whether Finish of the receiving instances was called, so that no handler may
// be called. Only a node that was restarted after the nodes had agreed upon the end sends
// to them then, because its instances begin again.
//
// The group may begin to finish on another worker after this look and before the guest has
// published the message. Then the handler is called after Finish. The agreement of all nodes
// would have to arrive in just this moment, after the restart of the node that sends, so this
// costs no lock for each message.
func (g *guest) isLate(a *Arrivals) bool { return !g.border.Accepts(g.unit, a.To) }

// replyTo sends the reply of an instance to a call. If several instances answer, a reply
// begins with the number of the instance as a varint.
func (a *Arrivals) replyTo(call Call, instance, way int) ReplyTo {
	if call.Number == 0 {
		return nil
	}
	nodes := a.guest.border.nodes
	return func(b []byte, err error) {
		if err == nil && a.ToInstance == OnAllOthers && way == everyInstance {
			b = append(binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen32+len(b)), uint64(instance)), b...)
		}
		nodes.Reply(a, call, b, err)
	}
}

// refuse counts a message that cannot be decoded, or that comes too late, as dropped.
func (g *guest) refuse(a *Arrivals, edge int, err error) {
	b := g.border
	if edge >= 0 && edge < b.Edges() {
		b.CountRefused(edge)
	}
	a.lost.add(a.entered)
	b.nodes.Handled(a, a.handled())
	level, text := slog.LevelError, "topogen: a message of another node cannot be decoded and is dropped"
	if errors.Is(err, errFinished) {
		level, text = slog.LevelWarn, "topogen: a message of another node comes after the end of its receiver and is dropped"
	}
	b.Log(a.To, level, text,
		slog.String("node", *g.node.Load()), slog.String("from", b.Processor(a.From).Name), slog.String("to", b.Processor(a.To).Name), slog.Any("error", err))
}
