package durabletests_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	shop "github.com/topogen/topogen/generated_test/durable"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// releasedWithin is far less than the hour for which a task waits that is not released.
const releasedWithin = time.Minute

// TestDurableTakesOver starts a topology with the store of a process that was killed while it had
// acquired a task. The task is taken over at once. That of a process without the store is not,
// because that process may still run.
func TestDurableTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		holders := map[string]string{"31": "owner-1", "32": "worker-1"}
		first := newShop(t, new(shop.World), pool.DurableStore(dir))
		for number := range holders {
			if err := first.Api().SendPlaceOrder(t.Context(), shop.PlaceOrder{OrderID: number, Customer: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := first.Run(ended()); err != nil {
			t.Fatal(err)
		}
		id := func(number string) string { return "shop:api.orders.PlaceOrder:" + number }
		shopWithStore(t, dir, func(do func(protocol.Operation) protocol.Result) {
			for number, pid := range holders {
				task := do(protocol.TaskGet{ID: id(number)}).Task
				do(protocol.TaskAcquire{ID: task.ID, Version: task.Version, PID: pid, TTL: time.Hour.Milliseconds()})
			}
		})

		second := newShop(t, new(shop.World), pool.DurableStore(dir))
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() { result <- second.Run(ctx) }()
		began := time.Now()
		h, err := second.Api().FindPlaceOrder(t.Context(), id("31"))
		if err != nil {
			t.Fatal(err)
		}
		if receipt, err := h.Wait(t.Context()); err != nil || receipt.Parcel != "parcel of 31" {
			t.Errorf("the receipt is %v, %v", receipt, err)
		}
		if took := time.Since(began); took > releasedWithin {
			t.Errorf("the order waited for %v", took)
		}
		cancel()
		if err := <-result; err != nil {
			t.Error(err)
		}
		shopWithStore(t, dir, func(do func(protocol.Operation) protocol.Result) {
			if task := do(protocol.TaskGet{ID: id("32")}).Task; task.State != protocol.TaskAcquired || *task.PID != "worker-1" {
				t.Errorf("the task of another process is %+v", task)
			}
		})
	})
}

// shopWithStore uses a store that no topology uses.
func shopWithStore(t *testing.T, dir string, use func(do func(protocol.Operation) protocol.Result)) {
	t.Helper()
	disk, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Config{Store: disk})
	if err != nil {
		t.Fatal(err)
	}
	use(func(op protocol.Operation) protocol.Result {
		r, err := e.Do(t.Context(), op)
		if err != nil || r.Status != protocol.OK {
			t.Fatalf("%s: %+v, %v", op.Kind(), r, err)
		}
		return r
	})
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestDurableReplays replays recorded executions with another program: TOPOGEN_REPLAY names the store.
func TestDurableReplays(t *testing.T) {
	dir := t.TempDir()
	first := newShop(t, new(shop.World), pool.DurableStore(dir))
	for _, id := range []string{"1", "2"} {
		if err := first.Api().SendPlaceOrder(t.Context(), shop.PlaceOrder{OrderID: id, Customer: id}); err != nil {
			t.Fatal(err)
		}
	}
	first.Api().Close()
	if err := first.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOPOGEN_REPLAY", dir)
	w := new(shop.World)
	same := newShop(t, w)
	if err := same.Run(t.Context()); err != nil {
		t.Errorf("the same program: %v", err)
	}
	if e := same.Snapshot().Edges[shop.EdgeOrdersAuditEntry]; len(w.Calls) > 0 || e.Sent > 0 {
		t.Errorf("the replay has called steps %v and sent %+v", w.Calls, e)
	}
	asks := newShop(t, w)
	if err := asks.Api().SendPlaceOrder(t.Context(), order); err != nil {
		t.Errorf("a send before a replay: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error)
	go func() {
		defer cancel() // must not end the replay
		_, err := asks.Api().AskPlaceOrder(t.Context(), shop.PlaceOrder{OrderID: "1"})
		answered <- err
	}()
	if err := asks.Run(ctx); err != nil {
		t.Errorf("a program that asks: %v", err)
	}
	if err := <-answered; !errors.Is(err, topo.ErrStopping) {
		t.Errorf("an ask during a replay: %v", err)
	}
	changed := newShop(t, &shop.World{Refused: "2"})
	if err := changed.Run(t.Context()); !errors.Is(err, durable.ErrDiverged) {
		t.Errorf("a program that ships no order 2: %v", err)
	}
	missing := filepath.Join(dir, "missing")
	t.Setenv("TOPOGEN_REPLAY", missing)
	if err := newShop(t, w).Run(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without a store: %v", err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the replay has made a store")
	}
}

// TestDurableStoreInUse sends while another process has the store: the error says how to share it.
func TestDurableStoreInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		disk, err := store.Open(dir, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer disk.Close()
		err = newShop(t, new(shop.World), pool.DurableStore(dir)).Api().SendPlaceOrder(t.Context(), order)
		if !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), "set TOPOGEN_DURABLE_STORE to the URL at which it serves the store") {
			t.Errorf("got %v", err)
		}
	})
}
