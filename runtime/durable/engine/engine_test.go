package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start opens an engine, and closes it at the end of the test.
func start(t testing.TB, c engine.Config) *engine.Engine {
	t.Helper()
	if c.Store == nil {
		c.Store = store.NewMemory()
	}
	e, err := engine.Open(c)
	must(t, err)
	t.Cleanup(func() { _ = e.Close(context.Background()) }) // it may be closed already
	return e
}

// do carries out an operation that must have a status.
func do(t testing.TB, e *engine.Engine, op protocol.Operation, status int) protocol.Result {
	t.Helper()
	r, err := e.Do(context.Background(), op)
	must(t, err)
	if r.Status != status {
		t.Fatalf("%s: status %d %s, want %d", op.Kind(), r.Status, r.Error, status)
	}
	return r
}

// quiet is a logger for tests that provoke errors.
var quiet = slog.New(slog.DiscardHandler)

// far is a deadline that no test reaches.
const far = protocol.MaxTime

func create(id string, tags ...string) protocol.PromiseCreate {
	p := protocol.PromiseCreate{ID: id, TimeoutAt: far, Tags: map[string]string{}}
	for i := 0; i < len(tags); i += 2 {
		p.Tags[tags[i]] = tags[i+1]
	}
	return p
}

func settle(id string) protocol.PromiseSettle {
	return protocol.PromiseSettle{ID: id, State: protocol.Resolved}
}

// target creates a promise with a task.
func target(id, address string) protocol.PromiseCreate {
	return create(id, protocol.TagTarget, address)
}

func connect(t testing.TB, e *engine.Engine, group, pid string) *engine.Connection {
	t.Helper()
	c, err := e.Connect(group, pid)
	must(t, err)
	return c.(*engine.Connection)
}

// receiveMax is longer than any test waits for a message. Most of these tests have virtual
// time.
const receiveMax = 1000 * time.Hour

// receive returns the next message of a connection as text.
func receive(t testing.TB, c *engine.Connection) string {
	t.Helper()
	select {
	case m, ok := <-c.Messages():
		if !ok {
			return "closed"
		}
		return text(m)
	case <-time.After(receiveMax):
		t.Fatal("no message")
		return ""
	}
}

func text(m protocol.Message) string {
	if m.Execute != nil {
		return fmt.Sprint("execute ", m.Execute.ID, " ", m.Execute.Version)
	}
	return fmt.Sprint("unblock ", m.Unblock.ID, " ", m.Unblock.State)
}

// check checks the invariants of a store.
func check(t testing.TB, s store.Store) {
	t.Helper()
	must(t, s.View(func(tx store.Tx) error {
		now, _, err := engine.LastCommit(tx)
		must(t, err)
		for _, v := range core.Check(tx, now) {
			t.Errorf("%v", v)
		}
		return nil
	}))
}

// TestOperations: operations, reads and messages through an engine on disk, which is then
// opened again.
func TestOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := memdir.Quick(t)
		s, err := store.Open(dir, store.Options{})
		must(t, err)
		e := start(t, engine.Config{Store: s})
		c := connect(t, e, "workers", "1")
		do(t, e, target("order", "poll://any@workers"), 200)
		if got := receive(t, c); got != "execute order 0" {
			t.Error(got)
		}
		do(t, e, protocol.TaskAcquire{ID: "order", Version: 0, PID: "1", TTL: 60_000}, 200)
		do(t, e, protocol.RegisterListener{Awaited: "order", Address: "poll://any@clients"}, 200)
		do(t, e, protocol.TaskFulfill{ID: "order", Version: 1, Action: settle("order")}, 200)
		client := connect(t, e, "clients", "1")
		if got := receive(t, client); got != "unblock order resolved" {
			t.Error(got)
		}
		synctest.Wait() // the engine notes a delivery after the receiver has the message
		do(t, e, protocol.PromiseGet{ID: "nothing"}, 404)
		must(t, e.Close(context.Background()))
		if got := receive(t, c); got != "closed" {
			t.Error(got)
		}

		s, err = store.Open(dir, store.Options{})
		must(t, err)
		check(t, s)
		e = start(t, engine.Config{Store: s})
		if r := do(t, e, protocol.PromiseGet{ID: "order"}, 200); r.Promise.State != protocol.Resolved {
			t.Error(r.Promise)
		}
		must(t, s.View(func(tx store.Tx) error {
			for range tx.Ascend(core.Outbox, nil) {
				t.Error("the message was delivered and must not be in the store")
			}
			return nil
		}))
	})
}

// TestClosed: a closed engine refuses operations and connections.
func TestClosed(t *testing.T) {
	e := start(t, engine.Config{})
	must(t, e.Close(context.Background()))
	do(t, e, create("p"), 503)
	do(t, e, protocol.PromiseGet{ID: "p"}, 503)
	if _, err := e.Connect("g", "p"); !errors.Is(err, engine.ErrClosed) {
		t.Error(err)
	}
	must(t, e.Close(context.Background()))
}
