package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestFull: while the disk is full, operations are refused with 503, reads that need no commit work, and the
// engine tries its own work again only now and then. Afterwards everything continues.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooked{Store: store.NewMemory()}
		e := start(t, engine.Config{Store: h, Logger: quiet})
		c := connect(t, e, "g", "p")
		notify(t, e, "before", "poll://any@g")
		p := create("deadline", protocol.TagExternal, "true")
		p.TimeoutAt = time.Now().Add(3 * time.Second).UnixMilli()
		do(t, e, p, 200)
		do(t, e, protocol.RegisterListener{Awaited: "deadline", Address: "poll://any@g"}, 200)
		attempts := 0
		h.set(func() {
			h.commit = func() error { attempts++; return fmt.Errorf("test: %w", store.ErrFull) }
		})
		do(t, e, create("refused"), 503)
		do(t, e, protocol.PromiseGet{ID: "before"}, 200)
		do(t, e, protocol.PromiseGet{ID: "refused"}, 404)
		expect(t, c, "unblock before resolved")
		time.Sleep(10 * time.Second)
		do(t, e, protocol.PromiseGet{ID: "deadline"}, 503) // its deadline has passed, and the store cannot keep that
		do(t, e, protocol.PromiseGet{ID: "before"}, 200)
		expect(t, c)
		if attempts < 5 || attempts > 15 {
			t.Errorf("%d attempts in 10 s", attempts)
		}
		h.set(func() { h.commit = nil })
		if r := do(t, e, protocol.PromiseGet{ID: "deadline"}, 200); r.Promise.State != protocol.RejectedTimeout {
			t.Errorf("a read must project the time: %+v", r.Promise)
		}
		do(t, e, create("accepted"), 200)
		if got := receive(t, c); got != "unblock deadline rejected_timedout" {
			t.Error(got)
		}
		time.Sleep(time.Second)
		if n := outbox(t, h); n != 0 {
			t.Errorf("%d messages are in the store", n)
		}
		if s := e.Stats(); s.Full == 0 || e.Err() != nil {
			t.Errorf("%+v %v", s, e.Err())
		}
	})
}

// TestFailedStore: the outcome of the commit that failed is unknown. The engine stops:
// other operations are refused, and connections end.
func TestFailedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, h, g := held(t, engine.Config{Logger: quiet})
		c := connect(t, e, "g", "p")
		waiting := later(t.Context(), e, create("waiting"))
		h.set(func() { h.commit = func() error { return fmt.Errorf("test: %w", store.ErrFailed) } })
		g.open() // of "first", whose hook was called before; "waiting" fails
		if o := <-waiting; !errors.Is(o.err, engine.ErrStopped) || !errors.Is(o.err, store.ErrFailed) {
			t.Error(o)
		}
		do(t, e, create("later"), 503)
		<-e.Stopped()
		if !errors.Is(e.Err(), store.ErrFailed) {
			t.Error(e.Err())
		}
		expect(t, c, "closed")
		if err := e.Close(context.Background()); !errors.Is(err, store.ErrFailed) {
			t.Error(err)
		}
		do(t, e, protocol.PromiseGet{ID: "first"}, 503)
	})
}

// TestDamagedRead: a read that finds damage stops the engine.
func TestDamagedRead(t *testing.T) {
	h := &hooked{Store: store.NewMemory()}
	e := start(t, engine.Config{Store: h, Logger: quiet})
	do(t, e, create("p"), 200)
	must(t, h.Store.Update(func(tx store.Tx) error { tx.Put(1, []byte("p"), []byte("damage")); return nil }))
	do(t, e, protocol.PromiseGet{ID: "p"}, 500)
	<-e.Stopped()
	if e.Err() == nil {
		t.Error("no error")
	}
	do(t, e, create("q"), 503)
}

// TestPanickingTick: a timeout whose step panics does not stop the engine. Other
// operations are carried out, and the timeouts are tried again every second.
func TestPanickingTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooked{Store: store.NewMemory()}
		e := start(t, engine.Config{Store: h, Logger: quiet})
		c := connect(t, e, "g", "p")
		p := create("poison", protocol.TagExternal, "true")
		p.TimeoutAt = time.Now().Add(time.Second).UnixMilli()
		do(t, e, p, 200)
		do(t, e, protocol.RegisterListener{Awaited: "poison", Address: "poll://any@g"}, 200)
		h.set(func() { h.wrap = func(tx store.Tx) store.Tx { return poisoned{tx, "poison"} } })
		time.Sleep(10 * time.Second)
		do(t, e, create("other"), 200)
		if s := e.Stats(); s.Panics < 5 || s.Panics > 20 {
			t.Errorf("%+v", s)
		}
		expect(t, c)
		h.set(func() { h.wrap = nil })
		if got := receive(t, c); got != "unblock poison rejected_timedout" {
			t.Error(got)
		}
	})
}

// TestBadConfig: settings that make no sense are refused.
func TestBadConfig(t *testing.T) {
	for name, c := range map[string]engine.Config{
		"no store":     {},
		"negative":     {Store: store.NewMemory(), CallsMax: -1},
		"core":         {Store: store.NewMemory()},
		"closed store": {Store: store.NewMemory()},
	} {
		if name == "core" {
			c.Core.RetryTimeout = -1
		}
		if name == "closed store" {
			must(t, c.Store.Close())
		}
		if _, err := engine.Open(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestPanickingAcknowledgement: a message whose deletion panics stays in the store until
// the deletion succeeds. The engine tries it every second.
func TestPanickingAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooked{Store: store.NewMemory()}
		e := start(t, engine.Config{Store: h, Logger: quiet})
		c := connect(t, e, "g", "p")
		notify(t, e, "promise", "poll://any@g")
		h.set(func() { h.wrap = func(tx store.Tx) store.Tx { return poisonedOutbox{tx} } })
		expect(t, c, "unblock promise resolved")
		time.Sleep(10 * time.Second)
		if s := e.Stats(); s.Panics < 5 || s.Panics > 20 {
			t.Errorf("%+v", s)
		}
		h.set(func() { h.wrap = nil })
		time.Sleep(2 * time.Second)
		if n := outbox(t, h); n != 0 {
			t.Errorf("%d messages are in the store", n)
		}
		expect(t, c)
	})
}
