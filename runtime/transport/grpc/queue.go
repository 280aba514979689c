package grpc

import (
	"sync"

	"github.com/topogen/topogen/runtime/transport"
)

// queue holds what waits for a peer. Large messages, those that go in chunks, have
// a bound of their own, so that a snapshot does not crowd out the rest.
type queue struct {
	limits queueLimits
	wake   bell // there may be something

	mu         sync.Mutex
	shut       bool // nothing is taken: the peer cannot be reached
	small      []transport.Message
	large      []transport.Message
	messages   int // small ones, with those that are taken out and not done
	bytes      int
	largeCount int // likewise
	largeBytes int
}

type queueLimits struct {
	messages, bytes int // of small messages
	largeBytes      int // of large ones together; each has at most as many
}

func newQueue(l queueLimits) *queue { return &queue{limits: l, wake: newBell()} }

// add takes what fits and returns how many messages do not.
func (q *queue) add(messages []transport.Message) (dropped int) {
	q.mu.Lock()
	for _, m := range messages {
		if !q.addOne(m) {
			dropped++
		}
	}
	q.mu.Unlock()
	if dropped < len(messages) {
		q.wake.ring()
	}
	return dropped
}

func (q *queue) addOne(m transport.Message) bool {
	size := len(m.Payload)
	switch {
	case q.shut:
		return false
	case size > chunkBytes:
		if q.largeCount >= largeWaitingMax || q.largeBytes+size > q.limits.largeBytes {
			return false
		}
		q.large = append(q.large, m)
		q.largeCount++
		q.largeBytes += size
	default:
		if size > q.limits.largeBytes || q.messages >= q.limits.messages || q.messages > 0 && q.bytes+size > q.limits.bytes {
			return false
		}
		q.small = append(q.small, m)
		q.messages++
		q.bytes += size
	}
	return true
}

// takeSmall takes out all small messages that wait, for a slice that is used up.
// They count as waiting until done.
func (q *queue) takeSmall(used []transport.Message) []transport.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	used, q.small = q.small, used[:0]
	return used
}

// takeLarge takes out all large messages that wait, behind those in to. They count
// as waiting until done.
func (q *queue) takeLarge(to []transport.Message) []transport.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	to = append(to, q.large...)
	clear(q.large)
	q.large = q.large[:0]
	return to
}

// done makes the room of messages that were taken out free again.
func (q *queue) done(messages ...transport.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range messages {
		if size := len(messages[i].Payload); size > chunkBytes {
			q.largeCount--
			q.largeBytes -= size
		} else {
			q.messages--
			q.bytes -= size
		}
	}
}

// open lets messages in again.
func (q *queue) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shut = false
}

// close lets nothing in, drops what has not been taken out, and returns how many
// messages that were.
func (q *queue) close() (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shut = true
	dropped = len(q.small) + len(q.large)
	for _, m := range q.small {
		q.messages--
		q.bytes -= len(m.Payload)
	}
	for _, m := range q.large {
		q.largeCount--
		q.largeBytes -= len(m.Payload)
	}
	q.small, q.large = nil, nil
	return dropped
}

func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.messages + q.largeCount
}
