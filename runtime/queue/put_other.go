//go:build !amd64 || race

package queue

import "sync/atomic"

// Put appends m. It becomes visible with the next Publish. Written may read pos at any
// time.
func Put[T any](e *Edge[T], m T) {
	if e.Head.pos == e.Head.limit {
		e.Head.slowPut()
	}
	e.buf[e.Head.pos] = m
	atomic.StoreUintptr(&e.Head.pos, e.Head.pos+1)
}

func (h *Head) setPos(pos uintptr) { atomic.StoreUintptr(&h.pos, pos) }
