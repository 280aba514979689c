package grpc

import (
	"sync"

	"github.com/topogen/topogen/runtime/transport"
)

// queue holds what waits for a peer until the outbox takes it. The room belongs to
// each group and class by itself, so that neither a snapshot nor another group
// crowds out the rest.
type queue struct {
	largest int    // payload
	wake    signal // there may be something

	mu      sync.Mutex
	closed  bool // nothing is taken: the peer cannot be reached
	waiting []transport.Message
	quota   transport.Quota // with the messages that are taken out and not done
}

func newQueue(c *Config) *queue {
	return &queue{largest: c.MessageBytesMax, wake: newSignal(), quota: transport.NewQuota(c.QueueMessages, c.QueueBytes)}
}

// misfits are messages that a queue has not taken, by why.
type rejected struct {
	closed int // the peer cannot be reached
	large  int // the payload has more than MessageBytesMax
	full   int // too much waits already
}

func (r rejected) all() int { return r.closed + r.large + r.full }

// add takes what fits and returns how many messages do not.
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

// take takes out all messages that wait, for a slice that is used up. They count
// as waiting until done.
func (q *queue) take(used []transport.Message) []transport.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	used, q.waiting = q.waiting, used[:0]
	return used
}

// done makes the room of messages that were taken out free again.
func (q *queue) done(messages ...transport.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.quota.Give(messages...)
}

// open lets messages in again.
func (q *queue) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = false
}

// close lets nothing in, drops what has not been taken out, and returns how many
// messages that were.
func (q *queue) close() (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	dropped = len(q.waiting)
	q.quota.Give(q.waiting...)
	q.waiting = nil
	return dropped
}

// count is how many messages wait, also messages that are taken out and not done.
func (q *queue) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.quota.Waiting()
}
