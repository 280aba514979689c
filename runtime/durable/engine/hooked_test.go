package engine_test

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
)

// hooked is a store whose updates a test observes, holds and lets fail.
type hooked struct {
	store.Store
	commits atomic.Int64 // updates that changed something

	mu     sync.Mutex
	wrap   func(store.Tx) store.Tx // the transactions of updates
	commit func() error            // called after the steps of each update; an error fails it
}

// set changes the hooks.
func (h *hooked) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *hooked) hooks() (func(store.Tx) store.Tx, func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wrap, h.commit
}

func (h *hooked) Update(f func(store.Tx) error) error {
	changed := false
	err := h.Store.Update(func(tx store.Tx) error {
		wrap, commit := h.hooks()
		if wrap != nil {
			tx = wrap(tx)
		}
		err := f(tx)
		changed = tx.Changed()
		if err == nil && commit != nil {
			err = commit()
		}
		return err
	})
	if changed && err == nil {
		h.commits.Add(1)
	}
	return err
}

// A gate holds the commits of a store until the test lets them pass, one at a time.
type gate struct {
	arrived, pass, opened chan struct{}
}

func newGate(h *hooked) *gate {
	g := &gate{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	h.set(func() {
		h.commit = func() error {
			select {
			case g.arrived <- struct{}{}:
				<-g.pass
			case <-g.opened:
			}
			return nil
		}
	})
	return g
}

// open lets the commit that is held and all later ones pass.
func (g *gate) open() {
	close(g.opened)
	g.pass <- struct{}{}
}

// poisoned is a transaction that panics when a promise is read.
type poisoned struct {
	store.Tx
	id string
}

func (p poisoned) Get(t core.Table, key []byte) []byte {
	if t == core.Promises && string(key) == p.id {
		panic("poison")
	}
	return p.Tx.Get(t, key)
}

// poisonedOutbox is a transaction that panics when unblock messages are read.
type poisonedOutbox struct{ store.Tx }

func (p poisonedOutbox) Ascend(t core.Table, from []byte) iter.Seq2[[]byte, []byte] {
	if t == core.Outbox {
		panic("poison")
	}
	return p.Tx.Ascend(t, from)
}

// slow is a transaction that takes a time to read a promise.
type slow struct {
	store.Tx
	id   string
	time time.Duration
}

func (s slow) Get(t core.Table, key []byte) []byte {
	if t == core.Promises && string(key) == s.id {
		time.Sleep(s.time)
	}
	return s.Tx.Get(t, key)
}
