package grpc

import (
	"sync"

	"github.com/topogen/topogen/runtime/transport"
)

// queue holds messages for a peer until the scheduler takes them. Each group and class
// has its own room, so that a snapshot or another group cannot use up the room of the
// rest.
type queue struct {
	largest int    // payload in bytes
	wake    signal // there may be messages

	mu      sync.Mutex
	closed  bool // no messages are accepted: the peer cannot be reached
	waiting []transport.Message
	quota   transport.Quota // includes messages that are taken and not done
}

func newQueue(c *Config) *queue {
	return &queue{largest: c.MessageBytesMax, wake: newSignal(), quota: transport.NewQuota(c.QueueMessages, c.QueueBytes)}
}

// rejected counts the messages that a queue did not accept, by reason.
type rejected struct {
	closed int // the peer cannot be reached
	large  int // the payload is larger than MessageBytesMax
	full   int // the queue is full
}

func (r rejected) all() int { return r.closed + r.large + r.full }

// add queues messages as long as there is room, and returns how many were rejected.
func (q *queue) add(messages []transport.Message) (dropped rejected) {
	q.mu.Lock()
	for _, m := range messages {
		if m.Class >= transport.Classes || m.Class == transport.Urgent && len(m.Payload) > wholeBytesMax {
			m.Class = transport.Ordered
		}
		switch {
		case q.closed:
			dropped.closed++
		case len(m.Payload) > q.largest:
			dropped.large++
		case !q.quota.Take(&m):
			dropped.full++
		default:
			q.waiting = append(q.waiting, m)
		}
	}
	q.mu.Unlock()
	if dropped.all() < len(messages) {
		q.wake.notify()
	}
	return dropped
}

// take returns all queued messages, in exchange for an unused slice. They count as
// queued until done is called.
func (q *queue) take(used []transport.Message) []transport.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	used, q.waiting = q.waiting, used[:0]
	return used
}

// done frees the room of messages that were taken.
func (q *queue) done(messages ...transport.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.quota.Give(messages...)
}

// open accepts messages again.
func (q *queue) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = false
}

// close accepts no more messages, drops the queued ones, and returns their number.
func (q *queue) close() (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	dropped = len(q.waiting)
	q.quota.Give(q.waiting...)
	q.waiting = nil
	return dropped
}

// count returns the number of queued messages, including those taken and not done.
func (q *queue) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.quota.Waiting()
}
