package edges

import (
	"sync"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/piper"
)

// figures counts the executions that this process knows, by edge: those that its senders
// have started, and others from their first activation on.
type figures struct {
	mu    sync.Mutex
	known map[string]int // the edge of each execution that has not ended, by id
	of    map[int]*piper.DurableFigures
}

func newFigures(edges []Edge) *figures {
	f := &figures{known: make(map[string]int), of: make(map[int]*piper.DurableFigures, len(edges))}
	for _, e := range edges {
		f.of[e.Index] = new(piper.DurableFigures)
	}
	return f
}

// add counts an execution. It returns false if it is known already.
func (f *figures) add(edge int, id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.known[id]; ok {
		return false
	}
	f.known[id] = edge
	of := f.of[edge]
	of.Sent++
	of.Len++
	return true
}

// undo removes an execution that was not started, or that had ended before it was counted.
func (f *figures) undo(edge int, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.known[id]; ok {
		delete(f.known, id)
		of := f.of[edge]
		of.Sent--
		of.Len--
	}
}

// end counts an execution that has ended.
func (f *figures) end(edge int, id string, handled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.known[id]; !ok {
		return
	}
	delete(f.known, id)
	of := f.of[edge]
	of.Len--
	if handled {
		of.Received++
	} else {
		of.Dropped++
	}
}

func (f *figures) read(edge int) piper.DurableFigures {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of := f.of[edge]; of != nil {
		return *of
	}
	return piper.DurableFigures{}
}

// outcome counts the outcome of an activation.
func (f *figures) outcome(edge int, id string, o durable.Outcome) {
	switch {
	case o.State == durable.Completed, o.State == durable.Failed:
		f.end(edge, id, true)
	case o.State == durable.Lost && isEnd(o.Err):
		f.end(edge, id, false)
	}
}
