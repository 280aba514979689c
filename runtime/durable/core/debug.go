package core

import (
	"bytes"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// debugReset deletes everything except Meta.
func (s *step) debugReset() protocol.Result {
	for t := Meta + 1; t < TableCount; t++ {
		var keys [][]byte
		for key := range s.kv.Ascend(t, nil) {
			keys = append(keys, bytes.Clone(key))
		}
		for _, key := range keys {
			s.kv.Delete(t, key)
		}
	}
	return protocol.Result{Status: protocol.OK}
}

// debugSnap returns the promises and tasks as they are stored, without projection, so
// that a test sees which timeouts were processed.
func (s *step) debugSnap() protocol.Result {
	snap := &protocol.Snapshot{
		Promises: []protocol.Promise{}, PromiseTimeouts: []protocol.PromiseTimeout{},
		Callbacks: []protocol.RegisterCallback{}, Listeners: []protocol.Listener{},
		Tasks: []protocol.Task{}, TaskTimeouts: []protocol.TaskTimeout{}, Messages: []protocol.Envelope{},
	}
	for id := range s.ids(Promises) {
		p := s.mustPromise(id, Promises)
		snap.Promises = append(snap.Promises, *p.record())
		if p.state == pending && p.flags&external != 0 {
			snap.PromiseTimeouts = append(snap.PromiseTimeouts, protocol.PromiseTimeout{ID: id, Timeout: p.timeoutAt})
		}
	}
	for awaited, awaiter := range s.pairs(Callbacks) {
		snap.Callbacks = append(snap.Callbacks, protocol.RegisterCallback{Awaited: awaited, Awaiter: awaiter})
	}
	for id, address := range s.pairs(Listeners) {
		snap.Listeners = append(snap.Listeners, protocol.Listener{ID: id, Address: address})
	}
	s.snapTasks(snap)
	for address := range s.ids(OutboxSizes) {
		for u := range s.undelivered(address) {
			p := s.mustPromise(u.promise, Outbox)
			snap.Messages = append(snap.Messages, protocol.Envelope{Address: address, Message: protocol.Message{Unblock: p.record()}})
		}
	}
	return protocol.Result{Status: protocol.OK, Snapshot: snap}
}

func (s *step) snapTasks(snap *protocol.Snapshot) {
	now := s.now
	s.now.Wall = -1 // no task has passed its deadline: they are shown as they are stored
	defer func() { s.now = now }()
	for id := range s.ids(Tasks) {
		t := s.mustTask(id, Tasks)
		snap.Tasks = append(snap.Tasks, *s.taskRecord(t))
		if t.timed() {
			kind := 0
			if t.state == taskAcquired {
				kind = 1
			}
			snap.TaskTimeouts = append(snap.TaskTimeouts, protocol.TaskTimeout{ID: id, Type: kind, Timeout: t.due})
		}
	}
}

// ids yields the keys of a table, as strings.
func (x *tx) ids(t Table) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range x.kv.Ascend(t, nil) {
			if !yield(string(key)) {
				return
			}
		}
	}
}

// pairs yields the keys of a table whose keys join two strings.
func (x *tx) pairs(t Table) func(yield func(a, b string) bool) {
	return func(yield func(a, b string) bool) {
		for key, value := range x.kv.Ascend(t, nil) {
			a, b, ok := bytes.Cut(key, []byte{end})
			if !ok {
				panic(corrupt(t, key, "the key has no separator"))
			}
			unseal(t, key, value)
			if !yield(string(a), string(b)) {
				return
			}
		}
	}
}
