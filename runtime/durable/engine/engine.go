package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// An Engine is the state of one server. Its methods may be called from several
// goroutines.
type Engine struct {
	config   Config
	core     *core.Core
	clock    *clock
	queue    *queue
	hub      *hub
	pusher   *pusher
	counters counters
	calls    sync.Pool    // of *call
	stored   atomic.Int64 // the time of day of the last commit
	schedule schedule     // of the committer
	retries  retries      // of the committer
	ended    ended        // of the batch that the committer carries out
	dead     dead         // of the committer

	backup    backups
	closing   chan struct{} // closed by Close
	closeOnce sync.Once
	stopped   chan struct{} // closed when the committer has ended
	failure   atomic.Pointer[error]
	closeErr  error // of the store; read after stopped
}

var _ protocol.Backend = (*Engine)(nil)

// Open starts an engine on a store. It sends the messages of pending tasks again. If Open
// fails, the store remains open.
func Open(config Config) (*Engine, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := core.New(config.Core)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		config: config, core: c,
		queue:   newQueue(config.CallsMax, config.CallBytesMax),
		retries: retries{interval: time.Duration(c.RetryTimeout()) * time.Millisecond},
		ended:   ended{},
		closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	err = config.Store.View(func(tx store.Tx) error {
		at, _, err := LastCommit(tx)
		if err != nil {
			return err
		}
		e.stored.Store(at.Wall)
		e.clock, err = newClock(config, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	e.hub = newHub(config.ConnectionsMax, config.BufferMax, &e.counters, config.Clock.Elapsed)
	e.pusher = newPusher(e)
	e.hub.push, e.hub.pushEnded, e.hub.pushable, e.hub.offered = e.pusher.add, e.pusher.remove, e.pusher.places, e.offered
	e.sendAgain()
	e.backup.ctx, e.backup.end = context.WithCancelCause(context.Background())
	go e.run()
	return e, nil
}

// sendAgain sends the execute messages of pending tasks that were offered before: they were
// lost with the previous process. Workers that connect later receive them.
func (e *Engine) sendAgain() {
	var effects []core.Effect
	err := e.config.Store.View(func(tx store.Tx) error {
		for effect, err := range core.Executes(tx, e.clock.now()) {
			if err != nil {
				return err
			}
			if effects = append(effects, effect); len(effects) == startMax {
				break
			}
		}
		return nil
	})
	if err != nil { // the retries send them
		e.config.Logger.Error("durable: cannot send the messages of pending tasks again", "error", err)
	}
	e.hub.deliver(effects, nil)
}

// Do carries out an operation. It returns when the effects are on disk. An operation that
// only reads does not wait for other operations, and sees all effects that were answered
// before the call.
//
// A refusal is a Result with a Status of 400 or more. Status 429 says that too many
// operations wait. Status 503 says that the engine is closed, or that the disk is full.
// In both cases the operation was not carried out.
//
// If ctx ends before the operation was handed over, it is not carried out, and the error
// is that of ctx. Later, the error also matches [ErrUnknown].
func (e *Engine) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	if isRead(op) {
		return e.read(ctx, op)
	}
	return e.commit(ctx, op)
}

// commit carries out an operation in a transaction.
func (e *Engine) commit(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	results, err := e.DoAll(ctx, []protocol.Operation{op})
	if err != nil {
		return protocol.Result{}, err
	}
	return results[0], nil
}

// DoAll carries out several operations in their order, in one transaction. Operations
// after a refused one are carried out too. See [Engine.Do] for the errors.
func (e *Engine) DoAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error) {
	for {
		results, certain, err := e.doAll(ctx, ops)
		if certain == nil {
			return results, err
		}
		select {
		case <-certain:
		case <-e.stopped: // the queue refuses the next attempt
		case <-ctx.Done():
		}
	}
}

// doAll is one attempt of DoAll. If the operations must wait until the time of day is
// certain, it returns a channel that is closed then.
func (e *Engine) doAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, <-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	c := e.newCall(ctx, ops)
	if !e.config.Debug && needsDebug(c) {
		c.refuse(protocol.Forbidden, "this server was not started with --debug")
		return c.take(), nil, nil
	}
	if len(ops) > e.config.BatchMax {
		c.refuse(protocol.BadRequest, fmt.Sprintf("a transaction has at most %d operations, got %d", e.config.BatchMax, len(ops)))
		return c.take(), nil, nil
	}
	switch e.queue.put(c) {
	case busy:
		e.counters.busy.Add(1)
		c.refuse(protocol.TooMany, "too many operations are waiting, try again later")
		return c.take(), nil, nil
	case closed:
		c.refuse(protocol.Unavailable, e.closedText())
		return c.take(), nil, nil
	}
	select {
	case <-c.done:
		err, certain := c.err, c.certain
		return c.take(), certain, err
	case <-ctx.Done():
	}
	if c.state.CompareAndSwap(callWaits, callAbandoned) {
		e.counters.abandoned.Add(1)
		return nil, nil, ctx.Err()
	}
	return nil, nil, fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
}

// take returns the results of a call that is done, and frees the call.
func (c *call) take() []protocol.Result {
	results := c.results
	c.free()
	return results
}

func (e *Engine) closedText() string {
	if err := e.Err(); err != nil {
		return err.Error()
	}
	return "the server is shutting down"
}

// isRead reports whether an operation never writes to the records. The core projects the
// time instead.
func isRead(op protocol.Operation) bool {
	switch op.(type) {
	case protocol.PromiseGet, protocol.PromiseSearch, protocol.TaskGet, protocol.TaskSearch,
		protocol.ScheduleGet, protocol.ScheduleSearch:
		return true
	}
	return false
}

// read carries out an operation that only reads, in the goroutine of its caller. If the
// answer shows that a deadline has passed that is after the time in the store, the committer
// carries the operation out again and stores the time: otherwise the next process could
// begin before the deadline, and the promise would be pending again.
func (e *Engine) read(ctx context.Context, op protocol.Operation) (r protocol.Result, err error) {
	if err := ctx.Err(); err != nil {
		return r, err
	}
	at := timeOf(ctx)
	if at != nil && !e.config.Debug {
		return protocol.Result{Status: protocol.Forbidden, Error: "this server was not started with --debug"}, nil
	}
	err = e.config.Store.View(func(tx store.Tx) error {
		r, _ = e.step(tx, op, e.instant(at))
		return r.Fault
	})
	r.Fault = nil
	switch {
	case errors.Is(err, store.ErrClosed):
		return protocol.Result{Status: protocol.Unavailable, Error: e.closedText()}, nil
	case err != nil && !errors.Is(err, errPanic):
		e.fail(err)
		return protocol.Result{Status: protocol.Internal, Error: err.Error()}, nil
	case at == nil && r.Passed > e.stored.Load():
		return e.commit(ctx, op)
	}
	return r, nil
}

// offered reports whether a task waits for a worker at a version. If the store cannot say
// it, the message is sent: an acquisition of a task that has ended is refused.
func (e *Engine) offered(t protocol.TaskRef) (offered bool) {
	err := e.config.Store.View(func(tx store.Tx) (err error) {
		offered, err = core.Offered(tx, t)
		return err
	})
	if err != nil && !errors.Is(err, store.ErrClosed) {
		e.fail(err)
	}
	return offered || err != nil
}

// step carries out an operation. An operation that panics has the status 500, and the
// transaction must not be committed.
func (e *Engine) step(kv core.KV, op protocol.Operation, now core.Instant) (r protocol.Result, effects []core.Effect) {
	defer func() {
		if p := recover(); p != nil {
			e.counters.panics.Add(1)
			e.config.Logger.Error("durable: a step panicked; this is an error in the program", "operation", op.Kind(), "panic", p, "stack", string(debug.Stack()))
			r, effects = protocol.Result{Status: protocol.Internal, Error: fmt.Sprintf("the operation failed: %v", p), Fault: errPanic}, nil
		}
	}()
	return e.core.Step(kv, op, now)
}

// errPanic is the fault of an operation that panicked.
var errPanic = errors.New("engine: a step panicked")

// Connect receives the messages for a process of a group. A process has one connection: a
// new one closes the one before. The result is a [*Connection].
func (e *Engine) Connect(group, pid string) (protocol.Connection, error) {
	c, err := e.hub.connect(group, pid)
	if err != nil {
		return nil, err // not a nil *Connection
	}
	return c, nil
}

// fail stops the engine after an error of the store that it cannot survive.
func (e *Engine) fail(err error) {
	err = fmt.Errorf("%w: %w", ErrStopped, err)
	if e.failure.CompareAndSwap(nil, &err) {
		e.config.Logger.Error("durable: the store has failed", "error", err)
		e.queue.close()
		signal(e.queue.wake)
	}
}

// Err returns the error that stopped the engine, or nil.
func (e *Engine) Err() error {
	if err := e.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Stopped is closed when the engine has ended, after Close or because the store failed.
func (e *Engine) Stopped() <-chan struct{} { return e.stopped }

// Close refuses further operations, answers the accepted ones, and closes the connections
// and the store. If ctx ends first, Close returns its error and the engine continues to
// close.
func (e *Engine) Close(ctx context.Context) error {
	e.closeOnce.Do(func() {
		e.queue.close()
		close(e.closing)
	})
	select {
	case <-e.stopped:
		return errors.Join(e.Err(), e.closeErr)
	case <-ctx.Done():
		return ctx.Err()
	}
}
