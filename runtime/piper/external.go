package piper

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/topogen/topogen/runtime/queue"
	"github.com/topogen/topogen/runtime/topo"
)

type externalState int32

const (
	externalOpen externalState = iota
	externalClosed
	externalStopping
)

// External is the runtime's part of an external processor, through which any goroutine
// can send messages into the topology.
type External struct {
	pool  *Pool
	proc  *processor
	state atomic.Int32
	ended chan struct{} // closed when Run returns; then no call gets a reply

	mu    sync.Mutex
	gates []*Gate
}

// Close ends the input of the external processor. It may be called several times.
func (x *External) Close() { x.close(externalClosed) }

func (x *External) stop() { x.close(externalStopping) }

// end wakes all callers that wait for room or for a reply, because Run returns.
func (x *External) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.state.CompareAndSwap(int32(externalOpen), int32(externalStopping))
	close(x.ended)
	for _, g := range x.gates {
		g.signal()
	}
}

func (x *External) close(to externalState) {
	if !x.state.CompareAndSwap(int32(externalOpen), int32(to)) {
		return
	}
	x.mu.Lock()
	gates := x.gates
	x.mu.Unlock()
	for _, g := range gates {
		g.signal() // locks the gate: sends in progress have ended or will see the new state
	}
	x.pool.events.closeOutputs(func(e *edge) bool { return e.From == x.proc.index })
	for _, g := range x.proc.group.down {
		g.inputClosed()
	}
}

// isClosed reports whether the sender accepts no messages, and no send is in progress.
func (x *External) isClosed() bool {
	if x.state.Load() == int32(externalOpen) {
		return false
	}
	x.mu.Lock()
	gates := x.gates
	x.mu.Unlock()
	for _, g := range gates {
		if !g.mu.TryLock() { // a send in progress may have seen the old state
			return false
		}
		g.mu.Unlock()
	}
	return true
}

func (x *External) err() error {
	switch externalState(x.state.Load()) {
	case externalClosed:
		return topo.ErrClosed
	case externalStopping:
		return topo.ErrStopping
	}
	return nil
}

// Gate is the sending side of a link from an external processor. Its lock makes many
// goroutines one producer. Generated code embeds it next to the Link.
type Gate struct {
	external *External
	link     *Link
	mu       gateLock
	room     chan struct{} // closed when there is room; nil while no caller waits
}

// Open adds a gate for l. It fails once the sender is closed.
func (x *External) Open(g *Gate, l *Link) error {
	g.external, g.link = x, l
	l.gate = g
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gates = append(x.gates, g)
	return x.err()
}

func (g *Gate) signal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wake()
}

// wake wakes all callers that wait for room. The caller of wake holds the lock.
func (g *Gate) wake() {
	if g.room != nil {
		close(g.room)
		g.room = nil
	}
}

// Target is one queue that a message enters.
type Target struct {
	Gate *Gate
	Head *queue.Head
	Full Policy
}

// Policy is what a send does if the queue is full.
type Policy uint8

const (
	Wait Policy = iota // waits until there is room
	Drop               // the queue drops a message
	Fail               // fails with topo.ErrFull
)

// Lock waits until all targets have room and returns with their gates locked, so that a
// message enters all of them or none. Callers must pass targets in ascending order of
// their links, so that locks cannot deadlock.
func (x *External) Lock(ctx context.Context, targets ...Target) error {
	if x.pool.options.node.Client != nil {
		for _, t := range targets {
			if err := x.stays(t.Head.Index()); err != nil {
				return err
			}
		}
	}
	if len(targets) == 0 { // no receiver exists, and without a gate tryLock does not look at the state
		return x.accepts(ctx)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		full := x.tryLock(targets)
		if full == nil {
			return nil
		}
		if err := x.err(); err != nil {
			return err
		}
		if full.Full == Fail {
			return topo.ErrFull
		}
		if err := x.await(ctx, full); err != nil {
			return err
		}
	}
}

// accepts returns the error of a send that enters no queue.
func (x *External) accepts(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return x.err()
}

// stays returns the error of a client's send along an edge that never leaves its node.
func (x *External) stays(edge int) error {
	if x.pool.options.node.Client != nil && x.pool.edges[edge].Stays {
		return fmt.Errorf("%w: %s", ErrStays, x.pool.edgeName(edge))
	}
	return nil
}

// tryLock locks all gates and returns nil, or locks none and returns the target that
// prevents it.
func (x *External) tryLock(targets []Target) *Target {
	for i := range targets {
		t := &targets[i]
		t.Gate.mu.Lock()
		if x.state.Load() != int32(externalOpen) || t.Full != Drop && !t.Head.Room() {
			for ; i >= 0; i-- {
				targets[i].Gate.mu.Unlock()
			}
			return t
		}
	}
	return nil
}

// await waits for room in one queue.
func (x *External) await(ctx context.Context, t *Target) error {
	if s := x.pool.stepper; s != nil {
		return s.stepUntilRoom(x, t)
	}
	g := t.Gate
	g.mu.Lock()
	if x.state.Load() != int32(externalOpen) || t.Head.Room() {
		g.mu.Unlock()
		return nil
	}
	if !t.Head.Await() {
		g.wake() // the receiver will not report room to the other callers that wait
		g.mu.Unlock()
		return nil
	}
	if g.room == nil {
		g.room = make(chan struct{})
	}
	room := g.room
	g.mu.Unlock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Commit publishes the messages and unlocks the gates.
func (x *External) Commit(targets ...Target) {
	for _, t := range targets {
		l := t.Gate.link
		put := l.publishShared(t.Head)
		t.Gate.mu.Unlock() // a barrier: the messages are visible before notify looks whether the receiver knows of them
		if put {
			l.notify(nil)
		}
	}
}

// NoInstance counts a copy of a message whose route returned no valid instance. Lock has
// accepted the message.
func (x *External) NoInstance(edge int) error { return x.pool.noInstance(edge) }

// SendNowhere sends a message whose only route returned no valid instance: it counts the
// message if it would have been accepted for an instance that exists.
func (x *External) SendNowhere(ctx context.Context, edge int) error {
	if err := x.stays(edge); err != nil {
		return err
	}
	if err := x.accepts(ctx); err != nil {
		return err
	}
	return x.NoInstance(edge)
}

// Lazy is a link of an external sender. The first goroutine that sends makes it.
type Lazy[L any] struct {
	link atomic.Pointer[L]
	mu   sync.Mutex
}

// Get returns the link and makes it at the first call. A link is kept even if it was
// made with an error: later callers get the error when they lock the gate.
func (z *Lazy[L]) Get(make func() (*L, error)) (*L, error) {
	if l := z.link.Load(); l != nil {
		return l, nil
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if l := z.link.Load(); l != nil {
		return l, nil
	}
	l, err := make()
	z.link.Store(l)
	return l, err
}

// Refuse counts a message from outside that cannot be sent along an edge as dropped, if it
// would have been accepted otherwise. It returns err with the name of the edge.
func (x *External) Refuse(ctx context.Context, edge int, err error) error {
	if err := x.accepts(ctx); err != nil {
		return err
	}
	x.pool.edges[edge].refused.Add(1)
	return fmt.Errorf("pool: edge %s: %w", x.pool.edgeName(edge), err)
}

// Accepts returns the error of a send that begins now: topo.ErrClosed after Close, and
// topo.ErrStopping when the topology stops.
func (x *External) Accepts() error { return x.err() }

// commitAsk is Commit for a request whose caller waits for the reply until ctx ends.
func (x *External) commitAsk(ctx context.Context, c asking, t Target) {
	l := t.Gate.link
	put := l.publishShared(t.Head)
	t.Gate.mu.Unlock()
	if put && (ctx.Done() != nil || !l.handleInline(c)) {
		l.notify(nil)
	}
}
