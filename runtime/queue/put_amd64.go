//go:build amd64 && !race

package queue

// Put appends m. It becomes visible with the next Publish. Put is short so that the
// compiler inlines it; a call of another generic method, which passes a dictionary,
// would already exceed the limit.
//
// Written may read pos at any time. On amd64 stores become visible in order, so a plain
// store of pos shows that the message before it is complete (see
// runtime/internal/count).
func Put[T any](e *Edge[T], m T) {
	if e.Head.pos == e.Head.limit {
		e.Head.slowPut()
	}
	e.buf[e.Head.pos] = m
	e.Head.pos++
}

func (h *Head) setPos(pos uintptr) { h.pos = pos }
