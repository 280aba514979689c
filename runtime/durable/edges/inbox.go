package edges

import (
	"errors"
	"fmt"
	"sync"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// errGaveUp is the error of an Ask whose execution waits for the next process.
var errGaveUp = fmt.Errorf("durable: the instance was given up, and the next process continues the execution: %w", topo.ErrFailed)

// An Inbox holds the activations that wait for an instance. The zero value is ready to use.
// At most ActivationsMax are in all inboxes of a process.
type Inbox struct {
	mu      sync.Mutex
	waiting []*work
}

// work is an activation for an instance.
type work struct {
	delivery
	edges      *Carrier
	edge       *Edge
	activation *durable.Activation
}

// put adds an activation, and makes the pool call Run of the inbox. If the processor has
// finished, the task returns to the store. It would come again at once if an instance was given up,
// because then processors finish before their executions.
func (b *Inbox) put(w *work) {
	if !w.unit.BeginWork() {
		if w.edges.finish.hasGivenUp() {
			w.activation.Abandon(errGaveUp)
		} else {
			w.activation.Release()
		}
		return
	}
	b.mu.Lock()
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	w.unit.Wake()
}

// take removes the oldest activation. more reports whether there are others.
func (b *Inbox) take() (w *work, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		return nil, false
	}
	w = b.waiting[0]
	b.waiting[0] = nil
	if b.waiting = b.waiting[1:]; len(b.waiting) == 0 {
		b.waiting = nil
	}
	return w, len(b.waiting) > 0
}

// Run calls one handler. Generated code calls it in Woken of an instance, on the goroutine
// of the instance. If the instance was given up, Run calls no handler: the next process continues
// the execution.
func (b *Inbox) Run(u *piper.Unit) error {
	w, more := b.take()
	if w == nil {
		return nil
	}
	if more {
		u.Wake() // so that the instance can do other work in between
	}
	if u.HasFailed() {
		w.activation.Abandon(errGaveUp) // so that it does not come again
		w.edges.finish.giveUp()
	} else {
		u.Work(func() { w.run(u) })
	}
	u.EndWork()
	return nil
}

func (w *work) run(u *piper.Unit) {
	w.edges.begins(w)
	outcome := w.activation.Run(u.Context(), w.delivery.run)
	w.edges.ended(w, outcome)
	if outcome.State == durable.Failed || outcome.State == durable.Retrying {
		var stack []byte
		if p, ok := errors.AsType[*durable.PanicError](outcome.Err); ok {
			stack = p.Stack
		}
		u.RecordFailure(w.edge.Index, outcome.Err, stack)
	}
}
