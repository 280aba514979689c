package durable

import (
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// acquire acquires a task. It returns nil if another worker has it, or if this worker
// cannot run it.
func (w *Worker) acquire(it *item) *execution {
	sent := w.now()
	result, repeated, err := w.doOften(w.ctx, protocol.TaskAcquire{ID: it.ref.ID, Version: it.ref.Version, PID: w.config.PID, TTL: w.config.Lease.Milliseconds()})
	if repeated && result.Status == protocol.Conflict {
		w.releaseUnseen(it.ref)
	}
	if err != nil || result.Status != protocol.OK || result.Task == nil || result.Promise == nil {
		return nil
	}
	e := &execution{
		worker: w, backend: w.live, item: it,
		task:    protocol.TaskRef{ID: result.Task.ID, Version: result.Task.Version},
		promise: result.Promise, origin: originOf(result.Promise),
	}
	e.acquired = sent
	e.leaseUntil.Store(int64(sent.Add(w.config.Lease).Sub(w.epoch)))
	if e.promise.State != protocol.Pending || e.promise.Tags[protocol.TagTimer] == "true" {
		// A timer of the SDKs has a target, but no function. The lease ends by itself.
		return nil
	}
	name, arg, err := decodeCall(e.promise.Param)
	if err != nil {
		w.rejectMalformed(e, err)
		return nil
	}
	if e.function = w.functions[name]; e.function == nil {
		w.reportUnknown(name, e.task.ID)
		w.releaseLater(e.task)
		return nil
	}
	e.arg = arg
	if err := w.readJournal(e, result.Preload); err != nil {
		return nil // the server does not answer; the lease ends by itself
	}
	w.mu.Lock()
	w.stats.Activations++
	w.held[e] = struct{}{}
	w.setActive()
	w.mu.Unlock()
	return e
}

// releaseUnseen releases a task that this worker has acquired without an answer, so that it
// is announced again before its lease ends. No other worker has the same pid.
func (w *Worker) releaseUnseen(ref protocol.TaskRef) {
	result, err := w.do(w.ctx, protocol.TaskGet{ID: ref.ID})
	t := result.Task
	if err != nil || t == nil || t.State != protocol.TaskAcquired || t.Version != ref.Version+1 || t.PID == nil || *t.PID != w.config.PID {
		return
	}
	_ = w.releaseTask(protocol.TaskRef{ID: t.ID, Version: t.Version}) // or the lease ends
}

// preloadSmall is the number of records, and their bytes, up to which the records that come
// with an acquisition are certainly complete. Servers cut longer lists.
const (
	preloadSmall      = 1000
	preloadSmallBytes = 1 << 20
)

// readJournal makes the journal of an execution. If the server may have cut the records, it
// reads all of them.
func (w *Worker) readJournal(e *execution, records []protocol.Promise) error {
	size := 0
	for i := range records {
		if data := records[i].Value.Data; data != nil {
			size += len(*data)
		}
	}
	if len(records) >= preloadSmall || size >= preloadSmallBytes {
		var err error
		if records, err = w.live.search(e, map[string]string{protocol.TagParent: e.promise.ID}); err != nil {
			return err
		}
		e.complete = true
	}
	e.journal = newJournal(e.promise.ID, records)
	return nil
}

const (
	// unknownDelay is the time after which a task is released whose function this program
	// does not have. A release is followed by a message at once, which may come to this
	// worker again.
	unknownDelay = time.Second
	// unknownHeld is how many such tasks are held. The leases of the others end.
	unknownHeld = 64
)

// releaseLater releases a task for another program of the group, which may have its
// function: while a new version of the program is started, both versions are in the group.
func (w *Worker) releaseLater(ref protocol.TaskRef) {
	if w.config.Manual {
		return
	}
	if w.unknownHeld.Add(1) > unknownHeld {
		w.unknownHeld.Add(-1)
		return
	}
	time.AfterFunc(unknownDelay, func() {
		defer w.unknownHeld.Add(-1)
		_ = w.releaseTask(ref) // or the lease ends
	})
}

// originOf is the origin of a promise: its tag, or its id if another program has created
// it without a tag.
func originOf(p *protocol.Promise) string {
	if origin := p.Tags[protocol.TagOrigin]; origin != "" {
		return origin
	}
	return p.ID
}

// rejectMalformed rejects a promise that no worker could run.
func (w *Worker) rejectMalformed(e *execution, err error) {
	w.count(func(s *Stats) { s.Malformed++ })
	w.log.Error("durable: a promise is rejected, because its parameter is not a call", "id", e.task.ID, "error", err)
	settle := protocol.PromiseSettle{ID: e.task.ID, State: protocol.Rejected, Value: encodeError(recorded(err))}
	_, _ = w.do(w.ctx, protocol.TaskFulfill{ID: e.task.ID, Version: e.task.Version, Action: settle})
}
