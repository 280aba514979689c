package engine

import (
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
)

// ended has the tasks that did not wait for a worker at some point of a transaction. The value
// is true if they do not wait after it.
type ended map[string]bool

// watched is a transaction that notes such tasks.
type watched struct {
	store.Tx
	ended ended
}

func (w watched) Put(t core.Table, key, value []byte) {
	w.Tx.Put(t, key, value)
	if t != core.Tasks {
		return
	}
	waits := core.Waits(value)
	if _, noted := w.ended[string(key)]; noted || !waits {
		w.ended[string(key)] = !waits
	}
}

func (w watched) Delete(t core.Table, key []byte) {
	w.Tx.Delete(t, key)
	if t == core.Tasks {
		w.ended[string(key)] = true
	}
}

// resend sends the execute messages that connections did not take, unless their tasks have
// ended or were acquired since then. It runs in the committer, so that no task ends between
// the check and the delivery.
func (e *Engine) resend() {
	messages := e.hub.takeReturned()
	if len(messages) == 0 {
		return
	}
	var waiting []core.Effect
	err := e.config.Store.View(func(tx store.Tx) error {
		for _, m := range messages {
			if ok, err := core.Offered(tx, *m.Message.Execute); err != nil {
				return err
			} else if ok {
				waiting = append(waiting, m)
			}
		}
		return nil
	})
	if err != nil {
		e.fail(err)
		return
	}
	e.hub.counters.ended.Add(uint64(len(messages) - len(waiting)))
	e.hub.repeat(waiting)
}

// takeReturned returns execute messages that connections did not take, at most resendMax.
func (h *hub) takeReturned() []core.Effect {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := min(len(h.returned), resendMax)
	taken := h.returned[:n:n]
	if h.returned = h.returned[n:]; len(h.returned) == 0 {
		h.returned = nil
	} else {
		signal(h.wake)
	}
	return taken
}

// repeat sends execute messages again.
func (h *hub) repeat(messages []core.Effect) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range messages {
		h.execute(m)
	}
}
