//go:build !amd64 || race

package queue

import "sync/atomic"

// Put appends m; it becomes visible with the next Publish. Written may read pos at
// any time.
func (e *Edge[T]) Put(m T) {
	if e.pos == e.limit {
		e.due()
	}
	e.buf[e.pos] = m
	atomic.StoreUintptr(&e.pos, e.pos+1)
}

func (h *Head) setPos(pos uintptr) { atomic.StoreUintptr(&h.pos, pos) }
