package peers

import "sync"

// locked is the simplest queue: a growing ring buffer behind a mutex.
type locked struct {
	mu          sync.Mutex
	ring        []uint64
	start, held int
}

func (q *locked) push(v uint64) {
	q.mu.Lock()
	if q.held == len(q.ring) {
		ring := make([]uint64, max(8, 2*q.held))
		k := copy(ring, q.ring[q.start:])
		copy(ring[k:], q.ring[:q.start])
		q.ring, q.start = ring, 0
	}
	q.ring[q.after(q.held)] = v
	q.held++
	q.mu.Unlock()
}

func (q *locked) pop() (v uint64, ok bool) {
	q.mu.Lock()
	if q.held > 0 {
		v, ok = q.ring[q.start], true
		q.start = q.after(1)
		q.held--
	}
	q.mu.Unlock()
	return v, ok
}

// after returns the index n places after the first, without a division.
func (q *locked) after(n int) int {
	if n += q.start; n >= len(q.ring) {
		n -= len(q.ring)
	}
	return n
}
