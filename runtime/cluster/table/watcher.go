package table

import (
	"context"
	"slices"
)

// Watcher reads the changes of a replica in order. One goroutine at a time may use it.
type Watcher struct {
	replica *Replica
	at      Revision // of the last event
	adopted uint64   // number of the state that at belongs to; 0: none yet
}

// Next returns the next event. It waits until there is one, or until ctx ends, or the
// table ends. After the reader was so slow that the replica has dropped events, the next
// event is a snapshot, and the changes after it follow. No change is ever skipped without
// a snapshot that contains it.
func (w *Watcher) Next(ctx context.Context) (*Event, error) {
	var e *Event
	if err := w.replica.wait(ctx, func() bool { e = w.take(); return e != nil }); err != nil {
		return nil, err
	}
	return e, nil
}

// take returns the next event, or nil. The lock of the replica must be held.
func (w *Watcher) take() *Event {
	r := w.replica
	first := w.adopted == 0
	if first && w.at != (Revision{}) {
		w.adopted = r.adopted + 1
	}
	if w.adopted != r.adopted+1 || w.at.Compare(r.from) < 0 || first && w.at.Compare(r.state.revision) > 0 {
		w.adopted, w.at = r.adopted+1, r.state.revision
		return &Event{Revision: w.at, Snapshot: r.state.Snapshot()}
	}
	i, found := slices.BinarySearchFunc(r.events, w.at, func(e *Event, at Revision) int { return e.Revision.Compare(at) })
	if found {
		i++
	}
	if i == len(r.events) {
		return nil
	}
	w.at = r.events[i].Revision
	return r.events[i]
}
