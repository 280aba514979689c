package durable

import (
	"context"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// abandonedMax is how many abandoned executions hold no slot of Config.Running and of the limits. It
// bounds their memory, and how often they are acquired in a lease.
const abandonedMax = 10_000

// abandoned are the executions that this worker has acquired and does not run, until their leases end.
// Worker.mu guards it.
type abandoned map[string]abandonment // by the id of the task

type abandonment struct {
	task  protocol.TaskRef
	until int64 // the end of the lease, in nanoseconds since Worker.epoch
	item  *item // nil if it holds no slot
	err   error // for callers
}

// add adds an execution. Unless there are too many, its slot becomes free.
func (a abandoned) add(x abandonment, q *queue, now time.Time) {
	a.remove(x.task.ID, q, now) // an earlier lease
	if len(a) < abandonedMax && x.item != nil {
		q.done(x.item, true, now)
		x.item = nil
	}
	a[x.task.ID] = x
}

func (a abandoned) remove(id string, q *queue, now time.Time) {
	if x, ok := a[id]; ok && x.item != nil {
		q.done(x.item, true, now)
	}
	delete(a, id)
}

// expire removes the executions whose leases have ended. The server announces their tasks again.
func (a abandoned) expire(at int64, q *queue, now time.Time) {
	for id, x := range a {
		if at >= x.until {
			a.remove(id, q, now)
		}
	}
}

// Abandon keeps the task without running the function until its lease ends. Then any worker of the
// group may get it, also this one. Callers that wait with this worker and are not durable functions get
// the error in place of the result. Neither Run nor Release must be called. A worker that is closed
// releases the task.
func (a *Activation) Abandon(err error) {
	w, e := a.e.worker, a.e
	if w.stopping.Load() {
		a.Release()
		return
	}
	if !a.taken.CompareAndSwap(false, true) {
		return
	}
	w.mu.Lock()
	w.abandoned.add(abandonment{e.task, e.leaseUntil.Load(), e.item, err}, &w.queue, w.now())
	w.drop(e)
	w.mu.Unlock()
	w.wake(e.task.ID)
	if !w.config.Manual {
		w.pump()
	}
}

// whyAbandoned returns the error of an execution that this worker has abandoned.
func (w *Worker) whyAbandoned(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.abandoned[id].err
}

// expireAbandoned removes abandoned executions whose leases have ended.
func (w *Worker) expireAbandoned() {
	w.mu.Lock()
	w.abandoned.expire(int64(w.now().Sub(w.epoch)), &w.queue, w.now())
	w.setActive()
	w.mu.Unlock()
	if !w.config.Manual {
		w.pump()
	}
}

// releaseTimeout is how long Close releases abandoned executions. The leases of the others end.
const releaseTimeout = time.Second

// releaseAbandoned releases all abandoned executions.
func (w *Worker) releaseAbandoned() {
	w.mu.Lock()
	var tasks []protocol.TaskRef
	for _, x := range w.abandoned {
		tasks = append(tasks, x.task)
	}
	clear(w.abandoned)
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), releaseTimeout)
	defer cancel()
	err := w.doBatches(ctx, tasks, func(ref protocol.TaskRef) []protocol.Operation {
		return []protocol.Operation{protocol.TaskRelease(ref)}
	})
	if err != nil {
		w.log.Warn("durable: tasks of instances that were given up could not be released; another worker gets them when their leases end", "error", err)
	}
}
