package durable

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A Worker runs the durable functions of a group, and starts calls and waits for them. One
// worker serves a process.
type Worker struct {
	config    Config
	backend   Backend
	functions map[string]*Function
	limited   bool // a function has a limit
	target    string
	address   string // of this worker alone
	log       *slog.Logger
	live      live
	epoch     time.Time
	serving   atomic.Bool
	stopping  atomic.Bool
	// unknownHeld counts the tasks that releaseLater holds.
	unknownHeld atomic.Int32
	ctx         context.Context // ends when the worker is closed
	cancel      context.CancelFunc

	mu         sync.Mutex
	queue      queue
	refill     refill
	held       map[*execution]struct{}
	active     chan struct{} // closed while held or abandoned is not empty
	acquiring  int           // tasks that are being acquired
	waiters    map[string][]chan *protocol.Promise
	abandoned  abandoned
	connection Connection
	connected  bool
	idle       chan struct{} // closed when nothing is held, if a Close waits for it
	stats      Stats
	unknown    map[string]bool // functions that were reported as unknown
	wakeTimer  *time.Timer
	beaten     time.Time // when Step sent heartbeats
}

// NewWorker makes a worker. Serve connects it.
func NewWorker(c Config) (*Worker, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	w := &Worker{
		config: c, backend: c.Backend, log: c.Logger,
		functions: make(map[string]*Function),
		target:    protocol.Target(c.Group),
		address:   "poll://uni@" + c.Group + "/" + c.PID,
		held:      make(map[*execution]struct{}),
		active:    make(chan struct{}),
		waiters:   make(map[string][]chan *protocol.Promise),
		abandoned: make(abandoned),
		unknown:   make(map[string]bool),
		queue:     newQueue(c.Running, c.Waiting),
	}
	w.live = live{w}
	w.epoch = w.now()
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for _, f := range c.Functions {
		switch {
		case f.Name == "" || len(f.Name) > nameMax:
			return nil, fmt.Errorf("durable: %q is not a name for a function", f.Name)
		case w.functions[f.Name] != nil:
			return nil, fmt.Errorf("durable: two functions have the name %q", f.Name)
		case f.Run == nil && f.Dispatch == nil:
			return nil, fmt.Errorf("durable: the function %q has neither Run nor Dispatch", f.Name)
		case f.Limit.Concurrency < 0 || f.Limit.Rate < 0 || f.Limit.Period < 0:
			return nil, fmt.Errorf("durable: the limits of the function %q are negative", f.Name)
		}
		w.functions[f.Name] = &f
		w.limited = w.limited || !f.Limit.isZero()
	}
	return w, nil
}

func (w *Worker) now() time.Time { return w.config.Now() }

// Group is the group of the worker.
func (w *Worker) Group() string { return w.config.Group }

// PID identifies the worker in its group.
func (w *Worker) PID() string { return w.config.PID }

// Target is the address of the group: poll://any@GROUP.
func (w *Worker) Target() string { return w.target }

// inMemoryDelayMax is the longest delay for which a step waits in memory. A manual worker
// cannot wait.
func (w *Worker) inMemoryDelayMax() time.Duration {
	if w.config.Manual {
		return 0
	}
	return time.Second
}

// message handles a message of the backend.
func (w *Worker) message(m protocol.Message) {
	switch {
	case m.Execute != nil:
		w.announced(*m.Execute)
	case m.Unblock != nil:
		w.settled(m.Unblock)
	}
}

// announced queues a task that may be acquired. If functions have limits, its promise is read
// first, because the limits depend on the function and the argument.
func (w *Worker) announced(ref protocol.TaskRef) {
	if w.stopping.Load() {
		return
	}
	var p *protocol.Promise
	if w.limited {
		var err error
		if p, err = w.promise(w.ctx, ref.ID); err != nil {
			return // the server announces it again
		}
	}
	w.enqueue(ref, p)
	if !w.config.Manual { // Step starts it
		w.pump()
	}
}

// enqueue queues a task. p is its promise, and nil if no function has limits.
func (w *Worker) enqueue(ref protocol.TaskRef, p *protocol.Promise) {
	name, limit := "", Limit{}
	if w.limited {
		name, limit = w.laneOf(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.queue.add(ref, name, limit, w.now()) {
		w.stats.Dropped++
		w.refill.wanted = w.refill.wanted || w.queue.waiting >= w.config.Waiting // else there are too many keys
	}
}

// laneOf returns the name of a task's lane: "" if it has no limit, or if the acquisition will
// find that the task is not for this worker.
func (w *Worker) laneOf(p *protocol.Promise) (name string, limit Limit) {
	function, arg, err := decodeCall(p.Param)
	f := w.functions[function]
	if err != nil || f == nil || f.Limit.isZero() {
		return "", Limit{}
	}
	key := ""
	if f.Limit.Key != nil {
		if key, err = f.Limit.Key(arg); err != nil {
			key = "" // the handler reports that the argument is wrong
		}
	}
	return laneName(function, key), f.Limit
}

// laneName is a name that no other function and key have.
func laneName(function, key string) string { return strconv.Quote(function) + key }

// reportUnknown logs the name of a function that the worker does not have, once.
func (w *Worker) reportUnknown(function, id string) {
	w.mu.Lock()
	w.stats.Unknown++
	first := !w.unknown[function] && len(w.unknown) < unknownMax
	if first {
		w.unknown[function] = true
	}
	w.mu.Unlock()
	if first {
		w.log.Error("durable: the group has a task for a function that this program does not have", "function", function, "id", id, "group", w.config.Group)
	}
}

// pump acquires tasks while the limits allow it.
func (w *Worker) pump() {
	for {
		w.mu.Lock()
		var it *item
		ok := false
		if !w.stopping.Load() {
			it, ok = w.queue.next(w.now())
		}
		if !ok {
			w.setTimer()
			refill := w.wantsRefill()
			w.mu.Unlock()
			if refill {
				go w.readPending()
			}
			return
		}
		w.acquiring++
		w.mu.Unlock()
		w.spawn(func() { w.activate(it) })
	}
}

// setTimer makes pump run again when a rate allows another start.
func (w *Worker) setTimer() {
	at, ok := w.queue.wake()
	if w.config.Manual || !ok || w.stopping.Load() {
		return
	}
	if w.wakeTimer == nil {
		w.wakeTimer = time.AfterFunc(at.Sub(w.now()), w.pump)
	} else {
		w.wakeTimer.Reset(at.Sub(w.now()))
	}
}

// spawn runs f in a goroutine of its own, or at once in a manual worker.
func (w *Worker) spawn(f func()) {
	if w.config.Manual {
		f()
	} else {
		go f()
	}
}

// activate acquires a task and runs or dispatches its function.
func (w *Worker) activate(it *item) {
	e := w.acquire(it)
	w.mu.Lock()
	w.acquiring--
	if e == nil {
		w.queue.done(it, false, w.now())
		w.signalIdle()
		w.mu.Unlock()
		if !w.config.Manual {
			w.pump()
		}
		return
	}
	a := &Activation{e: e}
	e.activation = a
	w.mu.Unlock()
	switch {
	case w.stopping.Load():
		a.Release()
	case e.function.Dispatch != nil:
		e.function.Dispatch(a)
	default:
		a.Run(w.ctx, e.function.Run)
	}
}

// finish forgets an activation.
func (w *Worker) finish(e *execution) {
	if e.finished != nil {
		close(e.finished)
		return
	}
	w.observe(e)
	w.mu.Lock()
	w.drop(e)
	if e.item != nil {
		w.queue.done(e.item, true, w.now())
	}
	w.mu.Unlock()
	if !w.config.Manual {
		w.pump()
	}
}

// drop removes an execution from held. The caller holds the lock.
func (w *Worker) drop(e *execution) {
	delete(w.held, e)
	w.setActive()
	w.signalIdle()
}

// hasTasks reports whether the worker has the lease of a task. The caller holds the lock.
func (w *Worker) hasTasks() bool { return len(w.held)+len(w.abandoned) > 0 }

// setActive lets heartbeats begin or end. The caller holds the lock.
func (w *Worker) setActive() {
	busy := w.hasTasks()
	select {
	case <-w.active:
		if !busy {
			w.active = make(chan struct{})
		}
	default:
		if busy {
			close(w.active)
		}
	}
}

// signalIdle tells Close that the worker holds no task. The caller holds the lock.
func (w *Worker) signalIdle() {
	if len(w.held) == 0 && w.acquiring == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}
