package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/internal/backoff"
)

// announcing is how many promises a worker with limits reads at once, to find out the
// keys of announced tasks.
const announcing = 64

// Serve connects the worker and runs the tasks of its group until ctx ends or Close is
// called. If the connection ends, Serve connects again. Each worker serves once.
//
// Serve returns nil after Close. When ctx ends, Serve closes the worker at once: tasks are
// released without waiting for the end of their steps, which run again elsewhere.
func (w *Worker) Serve(ctx context.Context) error {
	if w.config.Manual {
		return errors.New("durable: Serve is called on a manual worker: use Step")
	}
	if w.serving.Swap(true) {
		return errors.New("durable: Serve is called twice on one worker")
	}
	stop := context.AfterFunc(ctx, func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = w.Close(ended) // it says only how many steps are repeated
	})
	defer stop()
	go w.every(w.config.Lease/heartbeatsPerLease, w.heartbeat)
	go w.every(checkPeriod, w.check)
	for k := 1; ; k++ {
		began := w.now()
		err := w.serveConnection()
		if w.stopping.Load() {
			<-w.ctx.Done()
			return nil
		}
		if w.now().Sub(began) > repeatMax {
			k = 1
		}
		w.log.Warn("durable: the worker is not connected", "group", w.config.Group, "error", err)
		select {
		case <-time.After(backoff.Delay(repeatFirst, repeatMax, 0.5, k, w.config.Chance)):
		case <-w.ctx.Done():
			return nil
		}
	}
}

// every calls f in each period in which the worker holds tasks, until it is closed.
func (w *Worker) every(period time.Duration, f func(context.Context)) {
	for {
		w.mu.Lock()
		active := w.active
		w.mu.Unlock()
		select {
		case <-active:
		case <-w.ctx.Done():
			return
		}
		select {
		case <-time.After(period):
			ctx, cancel := context.WithTimeout(w.ctx, max(period, leaseMin))
			f(ctx)
			cancel()
		case <-w.ctx.Done():
			return
		}
	}
}

// serveConnection handles the messages of one connection.
func (w *Worker) serveConnection() error {
	c, err := w.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	slots := make(chan struct{}, announcing)
	for m := range c.Messages() {
		if m.Execute == nil || !w.limited {
			w.message(m)
			continue
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			w.message(m)
		}()
	}
	w.mu.Lock()
	w.connected = false
	w.mu.Unlock()
	return errors.New("the connection ended")
}

func (w *Worker) connect() (Connection, error) {
	c, err := w.backend.Connect(w.config.Group, w.config.PID)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connection, w.connected = c, true
	for _, waiting := range w.waiters { // so that they register, and need not ask again and again
		for _, waiter := range waiting {
			select {
			case waiter <- nil:
			default:
			}
		}
	}
	if w.stopping.Load() {
		c.Close()
	}
	return c, nil
}

// Step does the next piece of work of a manual worker: it handles a message, extends
// leases or starts a task. It reports whether there was something to do.
func (w *Worker) Step() bool {
	if w.stopping.Load() {
		return false
	}
	if w.connection == nil {
		if _, err := w.connect(); err != nil {
			w.log.Warn("durable: the worker is not connected", "group", w.config.Group, "error", err)
			return false
		}
		return true
	}
	if now := w.now(); now.Sub(w.beaten) >= w.config.Lease/heartbeatsPerLease {
		w.beaten = now
		w.mu.Lock()
		beats := w.hasTasks()
		w.mu.Unlock()
		if beats {
			w.heartbeat(w.ctx)
			return true
		}
	}
	w.mu.Lock()
	it, ok := w.queue.next(w.now())
	if ok {
		w.acquiring++
		w.mu.Unlock()
		w.activate(it)
		return true
	}
	w.mu.Unlock()
	select {
	case m, ok := <-w.connection.Messages():
		if !ok {
			w.connection = nil
			return true
		}
		if m.Execute != nil {
			w.announced(*m.Execute)
		} else {
			w.message(m)
		}
		return true
	default:
		return false
	}
}

// Next is the time at which Step has something to do although no message comes.
func (w *Worker) Next() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.queue.wake()
	if beat := w.beaten.Add(w.config.Lease / heartbeatsPerLease); w.hasTasks() && (!ok || beat.Before(at)) {
		at, ok = beat, true
	}
	return at, ok
}

// Close stops the worker. It takes no more tasks. An execution that runs is released at its
// next durable call, so that another worker continues it at once. When ctx ends before
// all have been released, Close ends their contexts and releases them all the same; a step
// that still runs is then repeated elsewhere. Close then returns an error with their
// number.
func (w *Worker) Close(ctx context.Context) error {
	if w.stopping.Swap(true) {
		<-w.ctx.Done()
		return nil
	}
	defer w.cancel()
	w.mu.Lock()
	if w.connection != nil {
		w.connection.Close()
	}
	if w.wakeTimer != nil {
		w.wakeTimer.Stop()
	}
	idle := make(chan struct{})
	w.idle = idle
	w.signalIdle()
	w.mu.Unlock()
	w.passOn(ctx)
	for _, a := range w.activations() {
		a.Release() // does nothing if it runs
	}
	if ctx.Err() == nil {
		select {
		case <-idle:
		case <-ctx.Done():
		}
	}
	defer w.releaseAbandoned()
	left := w.heldExecutions()
	for _, e := range left {
		w.endContext(e, ErrStopping)
		if err := w.releaseTask(e.task); err != nil {
			w.log.Warn("durable: a task could not be released; another worker gets it when its lease ends", "id", e.task.ID, "error", err)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("durable: %d executions did not end in time: %w", len(left), ctx.Err())
	}
	return nil
}

// activations are those of the executions that the worker holds. An execution without one is
// released by activate, which finds that the worker is stopping.
func (w *Worker) activations() (list []*Activation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e := range w.held {
		if e.activation != nil {
			list = append(list, e.activation)
		}
	}
	return list
}

// passOnBatch is for how many tasks doBatches writes at once.
const passOnBatch = 100

// passOn passes announced tasks that this worker has not acquired to other workers, who
// would otherwise be told when the retry timeout of the server has passed. Releasing a
// task sends its message again, and only an acquired task can be released.
func (w *Worker) passOn(ctx context.Context) {
	if w.config.Manual {
		ctx = context.WithoutCancel(ctx) // the store of a Stepper answers at once
	}
	w.mu.Lock()
	refs := w.queue.drain()
	w.mu.Unlock()
	err := w.doBatches(ctx, refs, func(ref protocol.TaskRef) []protocol.Operation {
		return []protocol.Operation{
			protocol.TaskAcquire{ID: ref.ID, Version: ref.Version, PID: w.config.PID, TTL: w.config.Lease.Milliseconds()},
			protocol.TaskRelease{ID: ref.ID, Version: ref.Version + 1},
		}
	})
	if err != nil {
		w.log.Warn("durable: announced tasks could not be passed on; the server announces them again", "error", err)
	}
}

// doBatches carries out operations for each task, in batches, until ctx ends.
func (w *Worker) doBatches(ctx context.Context, refs []protocol.TaskRef, operations func(protocol.TaskRef) []protocol.Operation) error {
	for batch := range slices.Chunk(refs, passOnBatch) {
		if ctx.Err() != nil {
			return nil
		}
		var ops []protocol.Operation
		for _, ref := range batch {
			ops = append(ops, operations(ref)...)
		}
		if _, err := doAll(ctx, w.backend, ops); err != nil {
			return err
		}
	}
	return nil
}
