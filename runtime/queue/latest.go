package queue

import "sync"

// Evictee is a message that wants to know when Latest drops it.
type Evictee interface{ Evicted() }

// Latest is a bounded queue that drops its oldest message to make room: it
// never holds more than its capacity and keeps the newest. The zero value needs
// Init. One producer and one consumer at a time.
//
// Both ends remove messages, so both take a lock; the producer may evict what
// the consumer is about to take. Messages are visible at once. N is the number
// under which a message was put: it lets the consumer take just the message it
// has looked at.
type Latest[T any] struct {
	Head  Head
	mu    sync.Mutex
	ring  []Numbered[T]
	start int
	count int
}

// Put appends m under number n, dropping the oldest message where the queue is
// at its capacity.
func (q *Latest[T]) Put(n uint64, m T) {
	if !q.Head.touched {
		if q.Head.touched = q.Head.listener.Touched(&q.Head); !q.Head.touched {
			// The receiver would not be told of it: it counts as put and dropped, so that
			// numbers and puts still agree.
			q.Head.evicted.Add(1)
			q.Head.base.StoreRelease(q.Head.base.Own() + 1)
			q.Head.published.Store(q.Head.base.Own())
			return
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if uint64(q.count) == q.Head.capacity {
		if m, ok := any(&q.ring[q.start].M).(Evictee); ok {
			m.Evicted()
		}
		q.ring[q.start] = Numbered[T]{}
		q.start = (q.start + 1) % len(q.ring)
		q.count--
		q.Head.evicted.Add(1)
	} else if q.count == len(q.ring) {
		q.grow()
	}
	q.ring[(q.start+q.count)%len(q.ring)] = Numbered[T]{n, m}
	q.count++
	q.Head.base.StoreRelease(q.Head.base.Own() + 1)
	q.Head.published.Store(q.Head.base.Own())
}

// grow makes room step by step, so that a quiet queue stays small.
func (q *Latest[T]) grow() {
	ring := make([]Numbered[T], min(uint64(max(segmentMin, len(q.ring)+len(q.ring)/4)), q.Head.capacity))
	k := copy(ring, q.ring[q.start:])
	copy(ring[k:], q.ring[:q.start])
	q.ring, q.start = ring, 0
}

// First returns the number of the oldest message, or reports false where there
// is none.
func (q *Latest[T]) First() (n uint64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count == 0 {
		return 0, false
	}
	return q.ring[q.start].N, true
}

// Take takes the oldest message if n is still its number.
func (q *Latest[T]) Take(n uint64) (m T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count == 0 || q.ring[q.start].N != n {
		return m, false
	}
	m = q.ring[q.start].M
	q.ring[q.start] = Numbered[T]{}
	q.start = (q.start + 1) % len(q.ring)
	q.count--
	q.Head.take(1)
	return m, true
}

// Pop takes the oldest message, or reports false where there is none.
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
