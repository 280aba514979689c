package durabletests_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	shop "github.com/topogen/topogen/generated_test/durable"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/edges"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// processors makes instances that change the world.
func processors(w *shop.World) shop.Processors {
	return shop.Processors{
		Orders:   func(topo.Instance) (*shop.Orders, error) { return &shop.Orders{World: w}, nil },
		Payments: func(topo.Instance) (*shop.Payments, error) { return &shop.Payments{World: w}, nil },
		Shipping: func(topo.Instance) (*shop.Shipping, error) { return &shop.Shipping{World: w}, nil },
		Morgue:   func(topo.Instance) (*shop.Morgue, error) { return &shop.Morgue{World: w}, nil },
	}
}

func newShop(t *testing.T, w *shop.World, opts ...pool.Option) *shop.Topology {
	t.Helper()
	topology, err := shop.New(processors(w), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

const week = 7 * 24 * time.Hour

var order = shop.PlaceOrder{OrderID: "17", Customer: "ann", Cents: 300, Wait: week}

// TestDurableSleepsAWeek runs a workflow that waits for a week, in virtual time.
func TestDurableSleepsAWeek(t *testing.T) {
	w := new(shop.World)
	topology := newShop(t, w)
	steps := topology.Stepper(1)
	h, err := topology.Api().StartPlaceOrder(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	if h.ID() != "shop:api.orders.PlaceOrder:17" {
		t.Errorf("the id is %q", h.ID())
	}
	began := steps.Now()
	if err := steps.Run(); err != nil {
		t.Fatal(err)
	}
	receipt, settled, err := h.Result(t.Context())
	if want := (shop.Receipt{Payment: "payment of 17", Parcel: "parcel of 17", Days: 7}); err != nil || !settled || receipt != want {
		t.Errorf("the result is %v %v %v, want %v", receipt, settled, err, want)
	}
	if passed := steps.Now().Sub(began); passed < week || passed > week+time.Minute {
		t.Errorf("%v have passed, want a week", passed)
	}
	for _, step := range []string{"charge", "ship"} {
		if w.Calls[step] != 1 {
			t.Errorf("%s was called %d times", step, w.Calls[step])
		}
	}
	figures := topology.Snapshot().Edges
	for _, edge := range []shop.EdgeIndex{shop.EdgeApiOrdersPlaceOrder, shop.EdgeOrdersPaymentsCharge, shop.EdgeOrdersShippingShip} {
		if f := figures[edge]; f.Sent != 1 || f.Received != 1 || f.Len != 0 || f.Dropped != 0 {
			t.Errorf("%v: %+v", edge, f)
		}
	}
	// Each activation of a function sends its ordinary messages again.
	if n := figures[shop.EdgeOrdersAuditEntry].Sent; n < 2 || int(n) != len(w.Entries) {
		t.Errorf("%d entries were sent, and %d were handled", n, len(w.Entries))
	}
}

// TestDurableAsk asks under a Stepper: the call runs steps until the reply is there.
func TestDurableAsk(t *testing.T) {
	topology := newShop(t, new(shop.World))
	topology.Stepper(2)
	for range 2 {
		receipt, err := topology.Api().AskPlaceOrder(t.Context(), order)
		if err != nil || receipt.Parcel != "parcel of 17" {
			t.Errorf("the reply is %v, %v", receipt, err)
		}
	}
	if err := topology.Api().SendBoxed(t.Context(), &shop.Box{Name: "carl", Kind: 3}); err != nil {
		t.Error(err)
	}
	if err := topology.Api().SendCancel(t.Context(), shop.Cancel{}); !errors.Is(err, edges.ErrNoID) {
		t.Errorf("a message without an id: %v", err)
	}
	h, err := topology.Api().StartCancel(t.Context(), shop.Cancel{Instance: 7, Ref: &shop.Ref{Number: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a message to an instance that does not exist: %v", err)
	}
	if _, err := topology.Api().FindPlaceOrder(t.Context(), "shop:api.orders.PlaceOrder:17"); err != nil {
		t.Error(err)
	}
	if _, err := topology.Api().FindPlaceOrder(t.Context(), "shop:api.orders.PlaceOrder:18"); !errors.Is(err, durable.ErrNotFound) {
		t.Errorf("an unknown id: %v", err)
	}
	if _, err := topology.Api().FindPlaceOrder(t.Context(), "shop:api.orders.Cancel:1"); !errors.Is(err, edges.ErrOtherEdge) {
		t.Errorf("the id of another edge: %v", err)
	}
	const whole = `begins with "shop:api.orders.PlaceOrder:", got "17"`
	if _, err := topology.Api().FindPlaceOrder(t.Context(), "17"); !errors.Is(err, edges.ErrOtherEdge) || !strings.Contains(err.Error(), whole) {
		t.Errorf("the number in place of the id: %v", err)
	}
}

// TestDurableSendsOutside sends along a durable edge with a context that is not that of the function, and
// in a step. The message would be sent again with each replay, so it is refused.
func TestDurableSendsOutside(t *testing.T) {
	for name, send := range map[string]func(durable.Context, *shop.OrdersSender) error{
		"another context": func(_ durable.Context, out *shop.OrdersSender) error {
			return out.SendShip(context.Background(), shop.Ship{OrderID: "1"})
		},
		"a step": func(ctx durable.Context, out *shop.OrdersSender) error {
			_, err := durable.Step(ctx, "ship", func(context.Context) (bool, error) {
				return true, out.SendShip(context.Background(), shop.Ship{OrderID: "1"})
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := new(shop.World)
			var refused error
			w.Send = func(ctx durable.Context, out *shop.OrdersSender) error {
				refused = send(ctx, out)
				return refused
			}
			topology := newShop(t, w)
			steps := topology.Stepper(1)
			h, err := topology.Api().StartPlaceOrder(t.Context(), order)
			if err != nil {
				t.Fatal(err)
			}
			topology.Api().Close()
			if err := steps.Run(); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Wait(t.Context()); err == nil || err.Error() != edges.ErrOutside.Error() || refused == nil {
				t.Errorf("the send returned %v, and the result is %v", refused, err)
			}
			if e := topology.Snapshot().Edges[shop.EdgeOrdersShippingShip]; e.Sent > 0 {
				t.Errorf("the figures are %+v", e)
			}
		})
	}
}

// TestDurableFinishes closes the inputs: the topology ends when every execution has ended.
func TestDurableFinishes(t *testing.T) {
	w := &shop.World{Failing: map[string]int{"17": 2, "18": 3}, Refused: "19"}
	topology := newShop(t, w)
	steps := topology.Stepper(3)
	handles := make(map[string]durable.Handle[shop.Receipt])
	for _, id := range []string{"17", "18", "19"} {
		h, err := topology.Api().StartPlaceOrder(t.Context(), shop.PlaceOrder{OrderID: id, Customer: "ann", Cents: 100, Wait: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		handles[id] = h
	}
	topology.Api().Close()
	if err := topology.Api().SendPlaceOrder(t.Context(), order); !errors.Is(err, topo.ErrClosed) {
		t.Errorf("a send after Close: %v", err)
	}
	if err := steps.Run(); err != nil {
		t.Fatal(err)
	}
	if !steps.Ended() {
		t.Error("the topology has not ended")
	}
	if len(w.Letters) != 1 || w.Letters[0].Attempts != 3 || !strings.Contains(w.Letters[0].Err.Error(), "the bank") {
		t.Errorf("the dead letters are %v", w.Letters)
	} else if m, ok := shop.DeadLetterOrdersPaymentsCharge(w.Letters[0]); !ok || m.OrderID != "18" {
		t.Errorf("the dead letter has the message %v", m)
	}
	if w.Charged["17"] != 100 || w.Charged["18"] != 0 || w.Charged["19"] != 0 || w.Calls["refund"] != 1 {
		t.Errorf("the charges are %v, refunds %d", w.Charged, w.Calls["refund"])
	}
	for _, e := range topology.Snapshot().Edges {
		if e.Len != 0 || e.Sent != e.Received+e.Dropped {
			t.Errorf("%s -> %s: %s: %+v", e.From, e.To, e.Message, e)
		}
	}
}

// TestDurableCrashes lets the process crash after each operation on the store, and starts the next one.
func TestDurableCrashes(t *testing.T) {
	crashes := 0
	for crash := 0; ; crash++ {
		w, store := new(shop.World), edges.NewMemory()
		store.CrashAfter(crash)
		receipt, err := shop.Receipt{}, error(nil)
		for runs := 0; ; runs++ {
			topology := newShop(t, w, pool.DurableMemory(store))
			topology.Stepper(uint64(crash))
			if receipt, err = topology.Api().AskPlaceOrder(t.Context(), order); !store.Crashed() {
				break
			}
			if crashes++; runs > 0 {
				t.Fatal("the second process has crashed too")
			}
		}
		if want := (shop.Receipt{Payment: "payment of 17", Parcel: "parcel of 17", Days: 7}); err != nil || receipt != want {
			t.Fatalf("after a crash at operation %d: %v, %v", crash, receipt, err)
		}
		if w.Calls["charge"] > 2 || w.Calls["ship"] > 2 || w.Calls["charge"]+w.Calls["ship"] > 3 {
			t.Fatalf("after a crash at operation %d, steps were repeated that had finished: %v", crash, w.Calls)
		}
		if crashes == crash { // this one had no crash
			break
		}
	}
	if crashes < 20 {
		t.Errorf("there were only %d crashes", crashes)
	}
}

// TestDurableClose closes a Stepper after a number of steps. The next Stepper must continue
// the work.
func TestDurableClose(t *testing.T) {
	for steps := range 40 {
		w, store := new(shop.World), edges.NewMemory()
		topology := newShop(t, w, pool.DurableMemory(store))
		s := topology.Stepper(uint64(steps))
		if steps > 0 {
			if err := topology.Api().SendPlaceOrder(t.Context(), order); err != nil {
				t.Fatal(err)
			}
		}
		for range steps {
			s.Step()
		}
		s.Close()
		topology = newShop(t, w, pool.DurableMemory(store))
		t.Cleanup(topology.Stepper(uint64(steps)).Close)
		receipt, err := topology.Api().AskPlaceOrder(t.Context(), order)
		if want := (shop.Receipt{Payment: "payment of 17", Parcel: "parcel of 17", Days: 7}); err != nil || receipt != want || s.Err() != nil {
			t.Fatalf("after Close at step %d: %v, %v, %v", steps, receipt, err, s.Err())
		}
	}
}

// TestDurableClosePassesOn closes a Stepper while executions wait for their limit. The next Stepper
// begins them at once, and not when the store announces them again.
func TestDurableClosePassesOn(t *testing.T) {
	const atOnce = time.Second // far less than the 30 s after which the store announces a task again
	for steps := range 40 {
		w, store := new(shop.World), edges.NewMemory()
		topology := newShop(t, w, pool.DurableMemory(store))
		s := topology.Stepper(uint64(steps))
		for _, id := range []string{"1", "2", "3"} {
			if err := topology.Api().SendPlaceOrder(t.Context(), shop.PlaceOrder{OrderID: id, Customer: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
		for range steps {
			s.Step()
		}
		s.Close()
		topology = newShop(t, w, pool.DurableMemory(store))
		s = topology.Stepper(uint64(steps))
		t.Cleanup(s.Close)
		began := s.Now()
		for _, id := range []string{"1", "2", "3"} {
			if _, err := topology.Api().AskPlaceOrder(t.Context(), shop.PlaceOrder{OrderID: id, Customer: "ann"}); err != nil {
				t.Fatal(err)
			}
		}
		if took := s.Now().Sub(began); took > atOnce {
			t.Errorf("after Close at step %d, the orders took %v", steps, took)
		}
	}
}

// TestDurableSameSeedSameTrace compares two runs.
func TestDurableSameSeedSameTrace(t *testing.T) {
	trace := func() (text string) {
		topology := newShop(t, new(shop.World))
		steps := topology.Stepper(9)
		var list strings.Builder
		steps.Trace(func(_ uint64, processor string, instance int) {
			list.WriteString(processor)
			list.WriteByte(byte('0' + instance))
		})
		for _, customer := range []string{"ann", "bob", "carl"} {
			if err := topology.Api().SendPlaceOrder(t.Context(), shop.PlaceOrder{OrderID: customer, Customer: customer, Wait: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		if err := steps.Run(); err != nil {
			t.Fatal(err)
		}
		return list.String()
	}
	if first, second := trace(), trace(); first != second {
		t.Errorf("the same seed gives two traces:\n%s\n%s", first, second)
	}
}

// TestDurableRunsOnADisk runs a topology, stops it, and lets the next one continue its work.
func TestDurableRunsOnADisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := new(shop.World), t.TempDir()
		run := func(use func(context.Context, *shop.Topology)) {
			topology := newShop(t, w, pool.DurableStore(dir))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- topology.Run(ctx) }()
			use(ctx, topology)
			cancel()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
		short := shop.PlaceOrder{OrderID: "20", Customer: "bob", Cents: 5}
		long := shop.PlaceOrder{OrderID: "21", Customer: "bob", Cents: 5, Wait: 300 * time.Millisecond}
		id := ""
		run(func(ctx context.Context, topology *shop.Topology) {
			if receipt, err := topology.Api().AskPlaceOrder(ctx, short); err != nil || receipt.Parcel != "parcel of 20" {
				t.Errorf("the reply is %v, %v", receipt, err)
			}
			h, err := topology.Api().StartPlaceOrder(ctx, long)
			if err != nil {
				t.Fatal(err)
			}
			id = h.ID()
		})
		if err := newShop(t, w, pool.DurableStore(dir)).Run(ended()); err != nil {
			t.Errorf("a run whose context has ended: %v", err)
		}
		run(func(ctx context.Context, topology *shop.Topology) {
			h, err := topology.Api().FindPlaceOrder(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if receipt, err := h.Wait(ctx); err != nil || receipt.Parcel != "parcel of 21" {
				t.Errorf("the reply of the second process is %v, %v", receipt, err)
			}
		})
		if w.Calls["charge"] != 2 || w.Calls["ship"] != 2 {
			t.Errorf("the steps were called %v", w.Calls)
		}
	})
}

// TestDurableAskIsStopped stops a topology while a caller waits for a reply. The error is the same as
// along other edges, so a Serve that returns it ends cleanly.
func TestDurableAskIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topology := newShop(t, new(shop.World), pool.DurableStore(t.TempDir()))
		ctx, cancel := context.WithCancel(t.Context())
		ended, answered := make(chan error), make(chan error)
		go func() { ended <- topology.Run(ctx) }()
		go func() {
			_, err := topology.Api().AskPlaceOrder(t.Context(), order)
			answered <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-answered; !errors.Is(err, topo.ErrStopping) {
			t.Errorf("the caller gets %v", err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestDurableRunFinishes ends Run without the end of its context.
func TestDurableRunFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(shop.World)
		topology := newShop(t, w, pool.DurableStore(t.TempDir()))
		for _, id := range []string{"1", "2", "3"} {
			if err := topology.Api().SendPlaceOrder(t.Context(), shop.PlaceOrder{OrderID: id, Customer: id, Wait: 10 * time.Millisecond}); err != nil {
				t.Fatal(err)
			}
		}
		topology.Api().Close()
		if err := topology.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(w.Charged) != 3 || w.Calls["ship"] != 3 {
			t.Errorf("when Run returns, the charges are %v, the calls %v", w.Charged, w.Calls)
		}
		for _, e := range topology.Snapshot().Edges {
			if e.Len != 0 || e.Sent != e.Received+e.Dropped {
				t.Errorf("%s -> %s: %s: %+v", e.From, e.To, e.Message, e)
			}
		}
	})
}

// TestDurableOneProcess refuses a second process on one store.
func TestDurableOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := newShop(t, new(shop.World), pool.DurableStore(dir))
		if err := first.Api().SendPlaceOrder(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		second := newShop(t, new(shop.World), pool.DurableStore(dir))
		if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("a second process: %v", err)
		}
		if err := second.Api().SendPlaceOrder(t.Context(), order); err == nil {
			t.Error("the second process has sent a message")
		}
		if err := first.Run(ended()); err != nil {
			t.Error(err)
		}
		if err := first.Api().SendPlaceOrder(t.Context(), order); !errors.Is(err, topo.ErrStopping) {
			t.Errorf("a send after Run: %v", err)
		}
	})
}

// TestDurableFiguresOverTime looks at the figures long after the ends of executions. Neither a message
// with the same id nor a replay counts an execution again. An execution that was canceled while it slept
// does not stay, although no handler is called for its end.
func TestDurableFiguresOverTime(t *testing.T) {
	day := speed.Pick[time.Duration](t, 4, 24, 24) * time.Hour
	synctest.Test(t, func(t *testing.T) {
		topology := newShop(t, new(shop.World), pool.DurableMemory(edges.NewMemory()))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- topology.Run(ctx) }()
		start := func(id string, wait time.Duration) durable.Handle[shop.Receipt] {
			h, err := topology.Api().StartPlaceOrder(ctx, shop.PlaceOrder{OrderID: id, Customer: id, Wait: wait})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return h
		}
		want := func(what string, edge shop.EdgeIndex, sent, received, dropped uint64) {
			t.Helper()
			if e := topology.Snapshot().Edges[edge]; e.Sent != sent || e.Received != received || e.Dropped != dropped || e.Len != int(sent-received-dropped) {
				t.Errorf("%s: %+v", what, e)
			}
		}
		start("1", day)
		if err := start("2", time.Hour).Cancel(ctx); err != nil {
			t.Fatal(err)
		}
		want("at once", shop.EdgeApiOrdersPlaceOrder, 2, 0, 0)
		time.Sleep(time.Minute)
		want("after a minute", shop.EdgeApiOrdersPlaceOrder, 2, 0, 1)
		time.Sleep(day + time.Hour) // the order is replayed when its payment is forgotten
		start("1", 0)
		start("2", 0)
		want("orders at the end", shop.EdgeApiOrdersPlaceOrder, 2, 1, 1)
		want("charges at the end", shop.EdgeOrdersPaymentsCharge, 2, 2, 0)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
