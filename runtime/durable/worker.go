package durable

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Config is the configuration of a worker. Fields that are zero have the default.
type Config struct {
	Backend Backend
	// Group is the group whose tasks the worker takes: those with the target
	// poll://any@GROUP. A topology uses its name.
	Group string
	// PID identifies the worker in its group. The default is unique for each worker.
	PID string
	// Functions are the functions that the worker runs. A worker without functions can
	// start calls and wait for them.
	Functions []Function
	// Lease is the time after which another worker takes a task whose worker has died. The
	// default is 30 s, and at least 1 s. A long lease delays the takeover; a short one is lost
	// when the process is paused.
	Lease time.Duration
	// Running is how many tasks the worker holds at once, 256 by default. Suspended
	// executions do not count.
	Running int
	// Waiting is how many announced tasks may wait until Running or a Limit allows them,
	// 10,000 by default. The server announces a task again that did not fit.
	Waiting int
	// Records is how many records an execution may have, 50,000 by default. A replay reads
	// all of them, so a loop without end must continue in a child.
	Records int
	// Logger is slog.Default by default.
	Logger *slog.Logger
	// Manual makes a worker without goroutines, for a scheduler that runs everything in
	// one goroutine under its own clock: Step does the work. Now, Random and Chance are
	// then the clock and the source of randomness.
	Manual bool
	// Await lets the scheduler of a manual worker work until the condition holds. It
	// returns false if it cannot. Handle.Wait calls it outside of durable functions. If it
	// is nil, Wait returns an error.
	Await  func(settled func() bool) bool
	Now    func() time.Time
	Random func() uint64
	Chance func() float64
}

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
	stopping  atomic.Bool
	ctx       context.Context // ends when the worker is closed
	cancel    context.CancelFunc

	mu         sync.Mutex
	queue      queue
	held       map[*execution]struct{}
	waiters    map[string][]chan *protocol.Promise
	connection Connection
	connected  bool
	idle       chan struct{} // closed when nothing is held, if a Close waits for it
	stats      Stats
	unknown    map[string]bool // functions that were reported as unknown
	wakeTimer  *time.Timer
	beaten     time.Time // when Step sent heartbeats
}

// Limits of a worker, in addition to those of Config.
const (
	leaseDefault   = 30 * time.Second
	leaseMin       = time.Second
	runningDefault = 256
	waitingDefault = 10_000
	recordsDefault = 50_000
	// lanesMax bounds the keys whose rate is remembered.
	lanesMax = 100_000
	// unknownMax bounds the names of unknown functions that are logged.
	unknownMax = 1000
)

// NewWorker makes a worker. Serve connects it.
func NewWorker(c Config) (*Worker, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	w := &Worker{
		config: c, backend: c.Backend, log: c.Logger,
		functions: make(map[string]*Function),
		target:    "poll://any@" + c.Group,
		address:   "poll://uni@" + c.Group + "/" + c.PID,
		held:      make(map[*execution]struct{}),
		waiters:   make(map[string][]chan *protocol.Promise),
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

func (c *Config) complete() error {
	switch {
	case c.Backend == nil:
		return errors.New("durable: Config.Backend is nil")
	case c.Group == "" || url.PathEscape(c.Group) != c.Group:
		return fmt.Errorf("durable: Config.Group must be a name that needs no escapes in an address, got %q", c.Group)
	case url.PathEscape(c.PID) != c.PID:
		return fmt.Errorf("durable: Config.PID must need no escapes in an address, got %q", c.PID)
	case c.Lease < 0 || c.Running < 0 || c.Waiting < 0 || c.Records < 0:
		return errors.New("durable: a number of Config is negative")
	case c.Manual && (c.Now == nil || c.Random == nil || c.Chance == nil):
		return errors.New("durable: a manual worker needs Config.Now, Random and Chance")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = random
	}
	if c.Chance == nil {
		c.Chance = mathrand.Float64
	}
	if c.PID == "" {
		c.PID = fmt.Sprintf("%016x%016x", c.Random(), c.Random())
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	setDefault(&c.Lease, leaseDefault)
	c.Lease = max(c.Lease, leaseMin)
	setDefault(&c.Running, runningDefault)
	setDefault(&c.Waiting, waitingDefault)
	setDefault(&c.Records, recordsDefault)
	return nil
}

func setDefault[T int | time.Duration](p *T, value T) {
	if *p == 0 {
		*p = value
	}
}

// random is a number that another process does not guess and does not repeat.
func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return binary.LittleEndian.Uint64(b[:])
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

// announced queues a task that may be acquired. If functions have limits, the parameter of
// its promise is read first, because the limits depend on the function and the argument.
func (w *Worker) announced(ref protocol.TaskRef) {
	if w.stopping.Load() {
		return
	}
	name, limit := "", Limit{}
	if w.limited {
		var ok bool
		if name, limit, ok = w.laneOf(ref); !ok {
			return
		}
	}
	w.mu.Lock()
	if !w.queue.add(ref, name, limit, w.now()) {
		w.stats.Dropped++
	}
	w.mu.Unlock()
	if !w.config.Manual { // Step starts it
		w.pump()
	}
}

// laneOf returns the name of a task's lane. It is false if the task is not for this worker.
func (w *Worker) laneOf(ref protocol.TaskRef) (name string, limit Limit, ok bool) {
	result, err := w.do(w.ctx, protocol.PromiseGet{ID: ref.ID})
	if err != nil || result.Promise == nil {
		return "", Limit{}, false
	}
	function, arg, err := decodeCall(result.Promise.Param)
	if err != nil {
		return "", Limit{}, true // the acquisition rejects the promise
	}
	f := w.functions[function]
	if f == nil {
		w.reportUnknown(function, ref.ID)
		return "", Limit{}, false
	}
	if f.Limit.isZero() {
		return "", Limit{}, true
	}
	key := ""
	if f.Limit.Key != nil {
		if key, err = f.Limit.Key(arg); err != nil {
			key = "" // the handler reports that the argument is wrong
		}
	}
	return strconv.Itoa(len(function)) + function + key, f.Limit, true
}

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
			w.mu.Unlock()
			return
		}
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
	if e == nil {
		w.mu.Lock()
		w.queue.done(it, false, w.now())
		w.mu.Unlock()
		if !w.config.Manual {
			w.pump()
		}
		return
	}
	a := &Activation{e: e}
	e.activation = a
	switch {
	case w.stopping.Load():
		a.Release()
	case e.function.Dispatch != nil:
		e.function.Dispatch(a)
	default:
		a.Run(w.ctx, e.function.Run)
	}
}

// acquire acquires a task. It returns nil if another worker has it, or if this worker
// cannot run it.
func (w *Worker) acquire(it *item) *execution {
	sent := w.now()
	result, err := w.do(w.ctx, protocol.TaskAcquire{ID: it.ref.ID, Version: it.ref.Version, PID: w.config.PID, TTL: w.config.Lease.Milliseconds()})
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
		return nil // the lease ends by itself: a release would be followed by a message at once
	}
	e.arg = arg
	if err := w.readJournal(e, result.Preload); err != nil {
		return nil // the server does not answer; the lease ends by itself
	}
	w.mu.Lock()
	w.stats.Activations++
	w.held[e] = struct{}{}
	w.mu.Unlock()
	return e
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

// finish forgets an activation.
func (w *Worker) finish(e *execution) {
	if e.finished != nil {
		close(e.finished)
		return
	}
	w.observe(e)
	w.mu.Lock()
	delete(w.held, e)
	if e.item != nil {
		w.queue.done(e.item, true, w.now())
	}
	if len(w.held) == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
	w.mu.Unlock()
	if !w.config.Manual {
		w.pump()
	}
}
