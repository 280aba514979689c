package piper

import (
	"context"
	"sync"

	"github.com/topogen/topogen/runtime/internal/hold"
)

// contexts has the contexts of the handlers of a processor whose calls have no timeout. A context
// is made at its first use, because most handlers take none.
type contexts struct {
	once sync.Once         // makes list, because several workers may call of at the same time
	list []context.Context // by instance
}

// of returns the context of u. Only the goroutine of u's worker calls it.
func (c *contexts) of(u *Unit) context.Context {
	c.once.Do(func() {
		if c.list == nil {
			c.list = make([]context.Context, len(u.proc.units))
		}
	})
	ctx := c.list[u.index]
	if ctx == nil {
		ctx = holding(u, u.proc.pool.handlerCtx)
		c.list[u.index] = ctx
	}
	return ctx
}

// holding returns a context that counts the holds of an instance, and has its fencing token.
func holding(u *Unit, ctx context.Context) context.Context {
	ctx = fenced(u, ctx)
	if w := u.watch(); w != nil {
		return hold.With(ctx, w.holder)
	}
	return hold.With(ctx, (*holds)(u))
}

// holds counts the holds of an instance without a Watch. Such an instance is never
// replaced, so its holds need no holder of their own.
type holds Unit

func (h *holds) Hold() (release func()) {
	proc := h.proc
	proc.hold()
	var once sync.Once
	return func() { once.Do(proc.release) }
}

// holder counts the holds of a watched instance. Each new instance gets a new holder,
// because the holds of the previous instance end with it.
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

// set sets the count, for an instance that runs in a process.
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

// drop ends the holds of an instance that has ended, and counts them as lost.
func (h *holder) drop() {
	h.mu.Lock()
	n := h.n
	h.n, h.closed = 0, true
	h.mu.Unlock()
	h.proc.faults.holdsLost.Add(uint64(n))
	for range n {
		h.proc.release()
	}
}

// hold keeps the processor's group from finishing until release is called.
func (proc *processor) hold() {
	proc.holds.Add(1)
	proc.group.hold()
}

func (proc *processor) release() {
	proc.holds.Add(-1)
	proc.group.release()
}
