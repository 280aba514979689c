package queue

import "sync"

// Evictee is a message whose method Evicted is called when Latest drops the message.
type Evictee interface{ Evicted() }

// Latest is a bounded queue that drops its oldest message to make room. It never holds
// more than its capacity, unless Head.KeepAll was called. The zero value must be
// initialized with Init. It has one producer and one consumer at a time.
//
// Both ends remove messages, so both take a lock; the producer may evict a message that
// the consumer is about to take. Messages are visible at once. Each message is put
// under a number, which lets the consumer take exactly the message that it has seen
// with First.
type Latest[T any] struct {
	Head  Head
	mu    sync.Mutex
	ring  []Numbered[T]
	start int
	count int
}

// Put appends m under number n. If the queue is at its capacity, it drops the oldest
// message.
func (q *Latest[T]) Put(m T, n uint64) {
	if !q.Head.touched {
		if q.Head.touched = q.Head.listener.Touched(&q.Head); !q.Head.touched {
			// The receiver would not be notified. The message counts as put and
			// dropped, so that the numbers still agree with the number of puts.
			q.Head.evicted.Add(1)
			q.Head.base.StoreRelease(q.Head.base.Own() + 1)
			q.Head.published.Store(q.Head.base.Own())
			return
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count > 0 && uint64(q.count)+q.Head.pending >= q.Head.room {
		if m, ok := any(&q.ring[q.start].M).(Evictee); ok {
			m.Evicted()
		}
		q.pop()
		q.Head.evicted.Add(1)
	} else if q.count == len(q.ring) {
		q.grow()
	}
	q.ring[(q.start+q.count)%len(q.ring)] = Numbered[T]{n, m}
	q.count++
	q.Head.base.StoreRelease(q.Head.base.Own() + 1)
	q.Head.published.Store(q.Head.base.Own())
}

// grow makes room in small steps, so that a queue with few messages stays small.
func (q *Latest[T]) grow() {
	ring := make([]Numbered[T], min(uint64(max(segmentMin, len(q.ring)+len(q.ring)/4)), q.Head.room))
	k := copy(ring, q.ring[q.start:])
	copy(ring[k:], q.ring[:q.start])
	q.ring, q.start = ring, 0
}

// First returns the number of the oldest message. It returns false if the queue is
// empty.
func (q *Latest[T]) First() (n uint64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count == 0 {
		return 0, false
	}
	return q.ring[q.start].N, true
}

// Take removes the oldest message if its number is still n.
func (q *Latest[T]) Take(n uint64) (m T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count == 0 || q.ring[q.start].N != n {
		return m, false
	}
	m = q.pop()
	q.Head.take(1)
	return m, true
}

// Pass removes the oldest message if its number is still n, and counts it as queued until
// Settle. At most half of the capacity, and at least one message, can be removed like
// this: the newer messages that come in the meantime need the other half.
func (q *Latest[T]) Pass(n uint64) (m T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count == 0 || q.ring[q.start].N != n || q.Head.pending >= max(1, q.Head.capacity/2) {
		return m, false
	}
	m = q.pop()
	q.Head.get++
	q.Head.pending++
	return m, true
}

// Settle counts n messages that Pass has removed as passed to handlers.
func (q *Latest[T]) Settle(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Head.Settle(n)
}

// pop removes the oldest message from the ring.
func (q *Latest[T]) pop() T {
	m := q.ring[q.start].M
	q.ring[q.start] = Numbered[T]{}
	q.start = (q.start + 1) % len(q.ring)
	q.count--
	return m
}

// Pop removes the oldest message. It returns false if the queue is empty.
func (q *Latest[T]) Pop() (m T, ok bool) {
	n, ok := q.First()
	for ok {
		if m, taken := q.Take(n); taken {
			return m, true
		}
		n, ok = q.First()
	}
	return m, false
}
