package border

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/queue"
)

// Pair names the two instances of a link between nodes.
type Pair struct {
	From         int // index of the sending processor
	FromInstance int // its instance; 0 for an external processor
	To           int // index of the receiving processor
	ToInstance   int
}

// Chunk holds messages of one Pair, encoded one after the other.
//
// Each message begins with a varint. Its lowest bit says that the index of the edge
// follows, as another varint; without it the edge is that of the message before. The
// other bits are the number of bytes that follow. On an edge with a reply they begin
// with the number of the call as a varint, which is 0 if no caller waits for the reply.
type Chunk struct {
	Data     []byte // belongs to Nodes
	Messages int
	// AtMostOnce says that the messages are not sent again after a lost connection.
	AtMostOnce bool
}

// chunkBytes is the size at which a chunk is passed on. It is large enough that the cost
// for a chunk does not count, and small enough that messages of other pairs get their
// turn soon.
const chunkBytes = 16 << 10

// ReusedBytes is the size of the buffers into which chunks are encoded. Only they are used again.
const ReusedBytes = chunkBytes + chunkBytes/4

// chunkBuffers keeps buffers for further chunks.
var chunkBuffers = sync.Pool{New: func() any { b := make([]byte, 0, ReusedBytes); return &b }}

// ReuseChunk says that the data of a chunk is not used any more.
func ReuseChunk(data []byte) {
	if cap(data) == ReusedBytes {
		b := data[:0] // only this branch allocates
		chunkBuffers.Put(&b)
	}
}

// fit returns the data of a chunk for Nodes, which may keep it for long. A small chunk gets a
// buffer of its size.
func (o *Outlet) fit(data []byte) []byte {
	buffer := o.buffer
	o.buffer = nil
	if cap(data) != ReusedBytes || len(data) > ReusedBytes/2 {
		return data
	}
	data = bytes.Clone(data)
	chunkBuffers.Put(buffer)
	return data
}

// Outlet is the end of a link whose receiving instance runs on another node. It encodes
// the messages of the link and passes them to Nodes in chunks. Except where a method
// says otherwise, it belongs to the goroutine of the receiving unit's worker.
//
// If a link leads to all other nodes, its Outlet has a branch for each node to which
// messages go that are for this node alone. A branch has chunks and settlements of its own,
// so its messages do not wait until others are handled. Nodes keeps the order of all chunks
// of the Outlet and its branches for each node.
type Outlet struct {
	Pair
	Node  string // of a branch: the node that gets its messages
	State any    // belongs to Nodes

	border      *Border
	unit        *piper.Unit // of the receiving instance
	link        *piper.Link
	chunk       Chunk
	buffer      *[]byte // of chunk, from chunkBuffers
	edge        int     // of the last message in chunk
	passed      []passed
	firstPassed int // index of the oldest element of passed

	trunk    *Outlet            // of a branch: the Outlet of the link
	branches map[string]*Outlet // by node
	active   *Outlet            // the Outlet or branch that has got the last message

	mu        sync.Mutex            // of the trunk: guards the rest
	calls     map[uint64]remoteCall // of the trunk: calls without a reply yet, by number
	callOrder []orderedCall         // those of the messages of this Outlet, by message
	lastCall  uint64                // of the trunk
	sent      uint64                // number of messages that were passed on
	reached   uint64                // number of messages that Reaches has reported
	settled   uint64                // number of messages of settlements that were counted

	settling atomic.Uint64 // number of messages that were passed to Settle
}

type orderedCall struct{ message, call uint64 }

// Trunk is the Outlet of the link to which a branch belongs, and the Outlet itself if it
// is not a branch.
func (o *Outlet) Trunk() *Outlet {
	if o.trunk != nil {
		return o.trunk
	}
	return o
}

// toward returns the Outlet or branch for messages to a node; "" stands for all nodes to
// which the link leads. It passes on what another one has, to keep the order.
func (o *Outlet) toward(node string) *Outlet {
	to := o
	if node != "" {
		if to = o.branches[node]; to == nil {
			to = &Outlet{Pair: o.Pair, Node: node, border: o.border, unit: o.unit, link: o.link, trunk: o}
			if o.branches == nil {
				o.branches = make(map[string]*Outlet)
			}
			if len(o.branches) >= idleBranches+o.border.nodes.Others() {
				o.dropIdle()
			}
			o.branches[node] = to
		}
	}
	if o.active != nil && o.active != to {
		o.active.flush()
	}
	o.active = to
	return to
}

// idleBranches is how many branches of an Outlet are kept in addition to those of the nodes
// that take part: nodes leave, and others with new names join.
const idleBranches = 16

// dropIdle drops the branches whose messages are all settled. The next message for such a node
// makes a new one.
func (o *Outlet) dropIdle() {
	maps.DeleteFunc(o.branches, func(_ string, b *Outlet) bool { return b != o.active && b.firstPassed == len(b.passed) })
}

// Limit is the largest size of an encoded message in bytes.
func (o *Outlet) Limit() int { return o.border.limit() }

// CrossingBytesMax is the largest size of an encoded message, or reply, between nodes. A
// chunk has one such message at most, and less than chunkBytes of others.
const CrossingBytesMax = 64 << 20

func (b *Border) limit() int { return min(b.MessageLimit(), CrossingBytesMax) }

// lengthRoom is the usual length of the varint before a message.
const lengthRoom = 2

// append adds a message to the chunk for a node; "" stands for all nodes to which the link
// leads. encode appends the message to b, which must not become longer than limit. If it
// fails, the message is dropped and counted.
func (o *Outlet) append(node string, q settler, h *queue.Head, encode func(b []byte, limit int) ([]byte, error)) {
	o = o.toward(node)
	if once := o.border.Edge(h.Index()).AtMostOnce; once != o.chunk.AtMostOnce {
		o.flush()
		o.chunk.AtMostOnce = once
	}
	if o.chunk.Data == nil {
		o.buffer = chunkBuffers.Get().(*[]byte)
		o.chunk.Data = *o.buffer
	}
	b, begin := o.chunk.Data, len(o.chunk.Data)
	b = append(b, make([]byte, lengthRoom)...)
	changed := uint64(0)
	if h.Index() != o.edge || o.chunk.Messages == 0 {
		changed = 1
		b = binary.AppendUvarint(b, uint64(h.Index()))
	}
	at := len(b)
	b, err := encode(b, at+o.Limit())
	if err == nil && len(b)-at > o.Limit() {
		err = fmt.Errorf("it has more than %d bytes", o.Limit())
	}
	if err != nil {
		o.chunk.Data = b[:begin]
		o.refuse(q, h, err)
		return
	}
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(b)-at)<<1|changed)
	if n == lengthRoom {
		copy(b[begin:], length[:n])
	} else {
		b = slices.Replace(b, begin, begin+lengthRoom, length[:n]...)
	}
	o.chunk.Data, o.edge = b, h.Index()
	o.chunk.Messages++
	if last := len(o.passed) - 1; last >= o.firstPassed && o.passed[last].head == h {
		o.passed[last].n++
	} else {
		o.passed = append(o.passed, passed{q, h, 1})
	}
	if len(b) >= chunkBytes {
		o.flush()
	}
}

// refuse drops a message that cannot be encoded.
func (o *Outlet) refuse(q settler, h *queue.Head, err error) {
	b := o.border
	q.Settle(1)
	b.CountDiscarded(h.Index(), 1)
	b.Log(o.To, slog.LevelError, "topogen: a message to another node cannot be encoded and is dropped",
		slog.String("edge", b.EdgeName(h.Index())), slog.Int("to", o.ToInstance), slog.Any("error", err))
}

// flush passes the chunk on.
func (o *Outlet) flush() {
	if o.active != nil && o.active != o {
		o.active.flush()
	}
	if o.chunk.Messages == 0 {
		return
	}
	b := o.chunk
	o.chunk = Chunk{}
	b.Data = o.fit(b.Data)
	o.sent += uint64(b.Messages)
	o.border.nodes.Forward(o, b)
}

// ForwardEdge passes on at most n messages of a queue. Generated code calls it.
func ForwardEdge[M any](o *Outlet, q *queue.Edge[M], n int, encode Encode[M]) int {
	batch := queue.Peek(q, n)
	for i := range batch {
		q.Head.Pass(1)
		o.append(nodeOf(&batch[i]), &q.Head, &q.Head, func(b []byte, limit int) ([]byte, error) { return encode(b, &batch[i], limit) })
	}
	return len(batch)
}

// ForwardNumbered is ForwardEdge for a link with several edges. It stops at a message
// whose number is not below until.
func ForwardNumbered[M any](o *Outlet, q *queue.Edge[queue.Numbered[M]], n int, until uint64, encode Encode[M]) int {
	batch := queue.Peek(q, n)
	k := 0
	for ; k < len(batch) && batch[k].N < until; k++ {
		q.Head.Pass(1)
		o.append(nodeOf(&batch[k].M), &q.Head, &q.Head, func(b []byte, limit int) ([]byte, error) { return encode(b, &batch[k].M, limit) })
	}
	return k
}

// ForwardLatest passes on the message with a number. It returns 0 if the message was
// dropped in the meantime, or must wait until others are handled.
func ForwardLatest[M any](o *Outlet, q *queue.Latest[M], number uint64, encode Encode[M]) int {
	m, ok := q.Pass(number)
	if !ok {
		return 0
	}
	o.append(nodeOf(&m), q, &q.Head, func(b []byte, limit int) ([]byte, error) { return encode(b, &m, limit) })
	return 1
}

// ForwardLatestEdge passes on at most n messages of a queue that drops its oldest messages
// and is the only one of its link.
func ForwardLatestEdge[M any](o *Outlet, q *queue.Latest[M], n int, encode Encode[M]) (k int) {
	for number, ok := q.First(); ok && k < n && ForwardLatest(o, q, number, encode) > 0; number, ok = q.First() {
		k++
	}
	return k
}

// remoteCall waits for what becomes of a request.
type remoteCall interface {
	// several reports whether there may be more than one reply.
	several() bool
	// reply takes a reply or an error of a node.
	reply(node string, b []byte, err error)
	// reaches says to how many nodes the request goes.
	reaches(nodes int)
	// end says that no more replies come, and why the request was dropped, if it was.
	end(dropped error)
	// waits reports whether the caller waits, and gaveUp whether it has stopped although
	// replies are missing.
	waits() bool
	gaveUp() bool
}

// target is the Outlet or branch that gets the message that is being appended.
func (o *Outlet) target() *Outlet { return cmp.Or(o.active, o) }

// addCall adds the call of the message that is being appended.
func (o *Outlet) addCall(c remoteCall) uint64 {
	at := o.target()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls == nil {
		o.calls = make(map[uint64]remoteCall)
	}
	o.lastCall++
	o.calls[o.lastCall] = c
	at.callOrder = append(at.callOrder, orderedCall{at.sent + uint64(at.chunk.Messages), o.lastCall})
	return o.lastCall
}

// Reply completes a call with a reply or an error of a node. A second reply is ignored.
// Any goroutine may call it.
func (o *Outlet) Reply(node string, call uint64, b []byte, err error) {
	o = o.Trunk()
	o.mu.Lock()
	c := o.calls[call]
	if c != nil && !c.several() {
		delete(o.calls, call)
	}
	o.mu.Unlock()
	if c != nil {
		c.reply(node, b, err)
	}
}

// failCall ends the call of the message that is being appended, because it cannot be encoded.
func (o *Outlet) failCall(call uint64, err error) {
	at := o.target()
	o.mu.Lock()
	c := o.calls[call]
	delete(o.calls, call)
	at.callOrder = at.callOrder[:len(at.callOrder)-1] // the next message gets its number
	o.mu.Unlock()
	c.end(err)
}

// Reaches says that the next n messages that were passed on go to a number of nodes. Nodes
// calls it if the messages are for all other nodes, and with 0 if they are for this node, which
// is a client and has no instances. Any goroutine may call it.
func (o *Outlet) Reaches(n, nodes int) {
	o.mu.Lock()
	o.reached += uint64(n)
	var told []remoteCall
	for i := len(o.callOrder) - 1; i >= 0 && o.callOrder[i].message >= o.reached-uint64(n); i-- {
		if c := o.calls[o.callOrder[i].call]; c != nil && o.callOrder[i].message < o.reached {
			told = append(told, c)
		}
	}
	o.mu.Unlock()
	for _, c := range told {
		c.reaches(nodes)
	}
}

// NobodyWaits reports whether the n messages that were passed on and not settled are requests
// whose callers have given up or, with replied, have their replies. Nodes must not call it while
// it calls Settle.
func (o *Outlet) NobodyWaits(n int, replied bool) bool {
	trunk, first := o.Trunk(), o.settling.Load()
	trunk.mu.Lock()
	defer trunk.mu.Unlock()
	end := first + uint64(n)
	for i := len(o.callOrder) - 1; i >= 0 && o.callOrder[i].message >= first; i-- {
		if o.callOrder[i].message >= end {
			continue // it was passed on in the meantime
		}
		c := trunk.calls[o.callOrder[i].call]
		if c != nil && c.waits() {
			return false
		}
		if replied || c != nil && c.gaveUp() {
			n--
		}
	}
	return n == 0 // the others are not requests
}

// resolveCalls ends the calls of the oldest n messages, which were settled. The reply of a
// message comes before its settlement, so a call without one has failed.
func (o *Outlet) resolveCalls(n int, err error) {
	trunk := o.Trunk()
	trunk.mu.Lock()
	o.settled += uint64(n)
	var open []remoteCall
	for len(o.callOrder) > 0 && o.callOrder[0].message < o.settled {
		call := o.callOrder[0].call
		o.callOrder = o.callOrder[1:]
		if c := trunk.calls[call]; c != nil {
			delete(trunk.calls, call)
			open = append(open, c)
		}
	}
	trunk.mu.Unlock()
	for _, c := range open {
		c.end(err)
	}
}
