package piper

import (
	"context"
	"sync"

	"github.com/topogen/topogen/runtime/internal/attempt"
	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/internal/hold"
)

// Context is the context of handlers: it ends when Run gives up, not when it
// begins to drain, and when the goroutine of the handler is abandoned.
func (u *Unit) Context() context.Context {
	w := u.watch()
	if w == nil {
		return u.ownContext()
	}
	ctx := w.ctx
	if ctx == nil {
		ctx = u.ownContext()
	}
	if n := u.Attempt(); n > 1 {
		return attempt.With(ctx, n)
	}
	return ctx
}

// Attempt is how often the message in hand was given to a handler, 1 where there is
// none.
func (u *Unit) Attempt() int {
	if w := u.watch(); w != nil && w.current != nil {
		return w.current.attemptCount()
	}
	return 1
}

// ownContext is the context of handlers of an instance that is not timed. It is
// made when it is first asked for: most handlers take none.
func (u *Unit) ownContext() context.Context {
	proc := u.proc
	proc.contextsOnce.Do(func() {
		if proc.contexts == nil {
			proc.contexts = make([]context.Context, len(proc.units))
		}
	})
	ctx := proc.contexts[u.index]
	if ctx == nil {
		ctx = u.holding(proc.pool.handlerCtx)
		proc.contexts[u.index] = ctx
	}
	return ctx
}

// holding returns a context whose holds are those of the instance.
func (u *Unit) holding(ctx context.Context) context.Context {
	if w := u.watch(); w != nil {
		return hold.With(ctx, w.holder)
	}
	return hold.With(ctx, (*holds)(u))
}

// holds is a Unit that is not watched, as the counter of what it holds: it needs not
// be told apart from instances before it.
type holds Unit

func (h *holds) Hold() (release func()) {
	proc := h.proc
	proc.hold()
	var once sync.Once
	return func() { once.Do(proc.release) }
}

// holder counts what a watched instance holds. Each instance that is made has its
// own: what the one before held is gone with it.
type holder struct {
	proc   *processor
	mu     sync.Mutex
	n      int
	closed bool
}

func (h *holder) Hold() (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return func() {}
	}
	h.n++
	h.proc.hold()
	var once sync.Once
	return func() { once.Do(h.release) }
}

func (h *holder) release() {
	h.mu.Lock()
	gone := h.closed
	if !gone {
		h.n--
	}
	h.mu.Unlock()
	if !gone {
		h.proc.release()
	}
}

// set makes the count that of an instance which runs in a process.
func (h *holder) set(n int) {
	h.mu.Lock()
	if h.closed {
		n = 0
	}
	more := n - h.n
	h.n = n
	for ; more > 0; more-- {
		h.proc.hold()
	}
	h.mu.Unlock()
	for ; more < 0; more++ {
		h.proc.release()
	}
}

func (h *holder) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n
}

// drop ends all holds. It returns how many there were.
func (h *holder) drop() (n int) {
	h.mu.Lock()
	n, h.n, h.closed = h.n, 0, true
	h.mu.Unlock()
	for range n {
		h.proc.release()
	}
	return n
}

// dropHolds counts what an instance held that has ended.
func (w *watch) dropHolds(h *holder) {
	if n := h.drop(); n > 0 {
		w.unit.proc.faults.holdsLost.Add(uint64(n))
	}
}

// hold keeps the processor's group from finishing until release.
func (proc *processor) hold() {
	proc.holds.Add(1)
	if !bug.On(bug.HoldForgotten) {
		proc.group.hold()
	}
}

func (proc *processor) release() {
	proc.holds.Add(-1)
	if !bug.On(bug.HoldForgotten) {
		proc.group.release()
	}
}
