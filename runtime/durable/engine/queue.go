package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// States of a call.
const (
	callWaits     = iota
	callTaken     // by the committer: the outcome is open
	callAbandoned // by its caller: the committer skips it
)

// A call is a caller of Do or DoAll that waits for its operations.
type call struct {
	ops       []protocol.Operation
	results   []protocol.Result // one for each operation
	err       error             // the outcome is unknown
	certain   <-chan struct{}   // the operations were not carried out, and must wait for it; nil: they were
	at        *core.Instant     // of [WithTime]; nil: now
	admission Admission         // of [WithAdmission]; nil: it is admitted
	size      int
	state     atomic.Int32
	done      chan struct{} // receives when results or err is set
	pool      *sync.Pool
}

// newCall takes a call from the engine's pool. The pool is not shared by engines, because
// the channel of a call belongs to the synctest bubble in which it was made.
func (e *Engine) newCall(ctx context.Context, ops []protocol.Operation) *call {
	c, ok := e.calls.Get().(*call)
	if !ok {
		c = &call{pool: &e.calls, done: make(chan struct{}, 1)}
	}
	c.ops = append(c.ops[:0], ops...)
	c.results = make([]protocol.Result, len(ops))
	c.err, c.certain, c.at, c.admission, c.size = nil, nil, timeOf(ctx), admissionOf(ctx), 0
	for _, op := range ops {
		c.size += weight(op)
	}
	c.state.Store(callWaits)
	return c
}

// free returns a call whose caller has received the results.
func (c *call) free() {
	clear(c.ops)
	c.results, c.admission = nil, nil
	c.pool.Put(c)
}

// refuse answers all operations with the same refusal.
func (c *call) refuse(status int, sentence string) {
	for i := range c.results {
		c.results[i] = protocol.Result{Status: status, Error: sentence}
	}
}

func (c *call) answer() { c.done <- struct{}{} }

// queue holds the calls that wait for the next transaction, in order.
type queue struct {
	max, bytesMax int
	wake          chan struct{} // receives when a call was added to an empty queue

	mu     sync.Mutex
	calls  []*call
	head   int
	bytes  int
	closed bool
}

func newQueue(most, bytesMax int) *queue {
	return &queue{max: most, bytesMax: bytesMax, wake: make(chan struct{}, 1)}
}

// The outcomes of put.
const (
	accepted = iota
	busy
	closed
)

// put adds a call, unless the queue is full or closed. An empty queue accepts a call of
// any size.
func (q *queue) put(c *call) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.calls) - q.head
	switch {
	case q.closed:
		return closed
	case n > 0 && (n >= q.max || q.bytes+c.size > q.bytesMax):
		return busy
	}
	if len(q.calls) == cap(q.calls) && q.head > 0 { // reuse the places of the calls that were taken
		q.calls = append(q.calls[:0], q.calls[q.head:]...)
		q.head = 0
	}
	q.calls = append(q.calls, c)
	q.bytes += c.size
	if n == 0 {
		signal(q.wake)
	}
	return accepted
}

// take returns the next call that its caller has not abandoned, or nil.
func (q *queue) take() *call {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.head < len(q.calls) {
		c := q.calls[q.head]
		q.calls[q.head] = nil
		q.head++
		q.bytes -= c.size
		if c.state.CompareAndSwap(callWaits, callTaken) {
			return c
		}
	}
	q.calls, q.head = q.calls[:0], 0
	return nil
}

// len returns the number and the size of the calls.
func (q *queue) len() (n, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls) - q.head, q.bytes
}

// close makes put refuse calls.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// signal wakes a receiver of a channel with one place.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// operationBytes is the weight of an operation without its texts: its structs, its index
// entries, its answer.
const operationBytes = 512

// weight estimates the memory that an operation takes.
func weight(op protocol.Operation) int {
	n := operationBytes
	switch op := op.(type) {
	case protocol.PromiseCreate:
		n += len(op.ID) + value(op.Param) + texts(op.Tags)
	case protocol.PromiseSettle:
		n += len(op.ID) + value(op.Value)
	case protocol.TaskCreate:
		n += weight(op.Action)
	case protocol.TaskFulfill:
		n += weight(op.Action)
	case protocol.TaskFence:
		n += weight(op.Action)
	case protocol.TaskSuspend:
		for _, a := range op.Actions {
			n += operationBytes + len(a.Awaited) + len(a.Awaiter)
		}
	case protocol.TaskHeartbeat:
		for _, t := range op.Tasks {
			n += operationBytes + len(t.ID)
		}
	case protocol.ScheduleCreate:
		n += len(op.ID) + len(op.PromiseID) + value(op.PromiseParam) + texts(op.PromiseTags)
	}
	return n
}

func value(v protocol.Value) int {
	n := texts(v.Headers)
	if v.Data != nil {
		n += len(*v.Data)
	}
	return n
}

func texts(m map[string]string) (n int) {
	for k, v := range m {
		n += len(k) + len(v)
	}
	return n
}
