package piper

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/topogen/topogen/runtime/internal/bug"
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
// with the number of the call as a varint, which is 0 if nobody waits for the reply.
type Chunk struct {
	Data     []byte // belongs to Nodes; it begins with ChunkRoom bytes for a header of Nodes
	Messages int
	// AtMostOnce says that the messages are not sent again after a lost connection.
	AtMostOnce bool
}

// chunkBytes is the size at which a chunk is passed on. It is large enough that the cost
// for a chunk does not count, and small enough that messages of other pairs get their
// turn soon.
const chunkBytes = 16 << 10

// ChunkRoom is the number of bytes at the beginning of Chunk.Data that Nodes may use.
const ChunkRoom = 32

// chunkBuffers keeps buffers of chunks for further chunks.
var chunkBuffers = sync.Pool{New: func() any { b := make([]byte, 0, ChunkRoom+chunkBytes+chunkBytes/4); return &b }}

// ReuseChunk says that the data of a chunk is not used any more.
func ReuseChunk(data []byte) {
	if cap(data) == ChunkRoom+chunkBytes+chunkBytes/4 {
		data = data[:0]
		chunkBuffers.Put(&data)
	}
}

// Outlet is the end of a link whose receiving instance runs on another node. It encodes
// the messages of the link and passes them to Nodes in chunks. Except where a method
// says otherwise, it belongs to the goroutine of the receiving unit's worker.
type Outlet struct {
	Pair
	State any // belongs to Nodes

	unit        *Unit // of the receiving instance
	link        *Link
	chunk       Chunk
	edge        int // of the last message in chunk
	passed      []passed
	firstPassed int // index of the oldest element of passed

	mu        sync.Mutex
	calls     map[uint64]func(b []byte, err error) // that wait for a reply, by number
	callOrder []orderedCall                        // the same, by message
	lastCall  uint64
	sent      uint64 // number of messages that were passed on
	settled   uint64 // number of messages of settlements
}

type orderedCall struct{ message, call uint64 }

// Limit is the largest size of an encoded message in bytes.
func (o *Outlet) Limit() int { return o.unit.proc.pool.crossingLimit() }

// CrossingBytesMax is the largest size of an encoded message, or reply, between nodes. A
// chunk has one such message at most, and less than chunkBytes of others.
const CrossingBytesMax = 64 << 20

func (p *Pool) crossingLimit() int { return min(p.options.messageLimit, CrossingBytesMax) }

// lengthRoom is the usual length of the varint before a message.
const lengthRoom = 2

// append adds a message to the chunk. encode appends the message to b, which must not
// become longer than limit. If it fails, the message is dropped and counted.
func (o *Outlet) append(q settler, h *queue.Head, encode func(b []byte, limit int) ([]byte, error)) {
	if once := o.unit.proc.pool.edges[h.Index()].AtMostOnce; once != o.chunk.AtMostOnce {
		o.flush()
		o.chunk.AtMostOnce = once
	}
	if o.chunk.Data == nil {
		o.chunk.Data = (*chunkBuffers.Get().(*[]byte))[:ChunkRoom]
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
	p := o.unit.proc.pool
	q.Settle(1)
	p.edges[h.Index()].discarded.Add(1)
	p.logRepeated(&o.unit.proc.crossLog, slog.LevelError, "topogen: a message to another node cannot be encoded and is dropped",
		slog.String("edge", p.edgeName(h.Index())), slog.Int("to", o.ToInstance), slog.Any("error", err))
}

// flush passes the chunk on.
func (o *Outlet) flush() {
	if o.chunk.Messages == 0 {
		return
	}
	b := o.chunk
	o.chunk = Chunk{}
	o.sent += uint64(b.Messages)
	o.unit.proc.pool.nodes.Forward(o, b)
}

// Settle says what became of the oldest n messages that were not settled yet: they were
// handled, or, with an error, dropped. Any goroutine may call it.
func (o *Outlet) Settle(n int, dropped error) {
	o.unit.away().settle(settlement{o, n, dropped})
}

// ForwardEdge passes on at most n messages of a queue. Generated code calls it.
func ForwardEdge[M any](o *Outlet, q *queue.Edge[M], n int, encode Encode[M]) int {
	batch := queue.Peek(q, n)
	for i := range batch {
		q.Head.Pass(1)
		o.append(&q.Head, &q.Head, func(b []byte, limit int) ([]byte, error) { return encode(b, &batch[i], limit) })
	}
	return len(batch)
}

// ForwardNumbered is ForwardEdge for a link with several edges. It stops at a message
// whose number is not below until.
func ForwardNumbered[M any](o *Outlet, q *queue.Edge[queue.Numbered[M]], n int, until uint64, encode Encode[M]) int {
	batch := queue.Peek(q, n)
	k := 0
	for ; k < len(batch) && (batch[k].N < until || bug.On(bug.OrderAcrossIgnored)); k++ {
		q.Head.Pass(1)
		o.append(&q.Head, &q.Head, func(b []byte, limit int) ([]byte, error) { return encode(b, &batch[k].M, limit) })
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
	o.append(q, &q.Head, func(b []byte, limit int) ([]byte, error) { return encode(b, &m, limit) })
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

func (o *Outlet) addCall(done func([]byte, error)) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls == nil {
		o.calls = make(map[uint64]func([]byte, error))
	}
	o.lastCall++
	o.calls[o.lastCall] = done
	o.callOrder = append(o.callOrder, orderedCall{o.sent + uint64(o.chunk.Messages), o.lastCall})
	return o.lastCall
}

// Reply completes a call with a reply or an error. A second reply is ignored. Any
// goroutine may call it.
func (o *Outlet) Reply(call uint64, b []byte, err error) {
	o.mu.Lock()
	done := o.calls[call]
	delete(o.calls, call)
	o.mu.Unlock()
	if done != nil {
		done(b, err)
	}
}

// resolveCalls completes the calls of the oldest n messages, which were settled. The
// reply of a message comes before its settlement, so a call without one has failed.
func (o *Outlet) resolveCalls(n int, err error) {
	o.mu.Lock()
	o.settled += uint64(n)
	var open []func([]byte, error)
	for len(o.callOrder) > 0 && o.callOrder[0].message < o.settled {
		call := o.callOrder[0].call
		o.callOrder = o.callOrder[1:]
		if done := o.calls[call]; done != nil {
			delete(o.calls, call)
			open = append(open, done)
		}
	}
	o.mu.Unlock()
	if err == nil {
		err = errNoReply
	}
	for _, done := range open {
		done(nil, err)
	}
}
