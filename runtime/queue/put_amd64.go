//go:build amd64 && !race

package queue

// Put appends m; it becomes visible with the next Publish. It is as small as it
// is so that it is inlined; a call of another generic method, which takes a
// dictionary along, would already be too much.
//
// Written may read pos at any time. On amd64 stores are seen in order, so a plain one
// says that the message before it is complete (see runtime/internal/count).
func Put[T any](e *Edge[T], m T) {
	if e.Head.pos == e.Head.limit {
		e.Head.slowPut()
	}
	e.buf[e.Head.pos] = m
	e.Head.pos++
}

func (h *Head) setPos(pos uintptr) { h.pos = pos }
