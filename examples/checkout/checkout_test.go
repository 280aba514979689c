package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/edges"
	"github.com/topogen/topogen/runtime/pool"
)

// TestMain makes this executable the example's program, because the demonstration starts its
// own executable.
func TestMain(m *testing.M) {
	const program = "CHECKOUT_PROGRAM"
	if os.Getenv(program) != "" {
		main()
		return
	}
	os.Setenv(program, "true")
	os.Exit(m.Run())
}

// TestDemonstration kills processes as the example does, fewer of them.
func TestDemonstration(t *testing.T) {
	speed.Landing(t) // TestOrders lets the process crash in virtual time
	var out strings.Builder
	if err := demonstrate(t.Context(), &out, settings{orders: 30, workers: 2, kills: 4, seed: 7}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"30 orders in ", "4 kills: ", "every order was completed or compensated, and no card was charged twice"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestOrders carries out orders in virtual time, and lets the process crash at any operation.
func TestOrders(t *testing.T) {
	w, err := openWorld(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(worldVariable, w.url())
	store := edges.NewMemory()
	var receipts []Receipt
	for order, crash := 0, 0; order < 12; order, crash = order+1, crash+7 {
		store.CrashAfter(crash)
		for {
			topology, err := New(Processors{}, pool.DurableMemory(store))
			if err != nil {
				t.Fatal(err)
			}
			topology.Stepper(uint64(order))
			receipt, err := topology.Shop().AskPlaceOrder(t.Context(), PlaceOrder{Number: order, Customer: "ann", Card: "card", Cents: 5})
			if store.Crashed() {
				continue // the next process
			}
			if err != nil {
				t.Fatal(err)
			}
			receipts = append(receipts, receipt)
			break
		}
	}
	if err := check(io.Discard, w, receipts, nil, time.Second); err != nil {
		t.Error(err)
	}
}

// TestCheckFindsFaults shows the check what must not happen.
func TestCheckFindsFaults(t *testing.T) {
	done := func(list ...string) *world {
		w := &world{done: make(map[string][]deed)}
		for i, service := range list {
			w.done[service] = append(w.done[service], deed{0, fmt.Sprint(i), ""})
		}
		return w
	}
	completed, compensated := Receipt{Completed: true}, Receipt{Reason: "not shipped"}
	for name, c := range map[string]struct {
		receipt Receipt
		world   *world
		wrong   string
	}{
		"completed":             {completed, done("reserve", "charge", "ship"), ""},
		"compensated":           {compensated, done("reserve", "charge", "refund", "release"), ""},
		"refused at once":       {compensated, done(), ""},
		"charged twice":         {completed, done("reserve", "charge", "charge", "ship"), "the card was charged 2 times"},
		"not shipped":           {completed, done("reserve", "charge"), "0 parcels"},
		"shipped twice":         {completed, done("reserve", "charge", "ship", "ship"), "2 parcels"},
		"not refunded":          {compensated, done("reserve", "charge", "release"), "0 refunds"},
		"not released":          {compensated, done("reserve"), "0 releases"},
		"shipped and refunded":  {compensated, done("reserve", "charge", "ship", "refund", "release"), "1 parcels"},
		"without a reason":      {Receipt{}, done(), "has no reason"},
		"completed for nothing": {completed, done(), "0 charges"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := check(&out, c.world, []Receipt{c.receipt}, nil, time.Second)
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("got %v, want %q", err, c.wrong)
			}
			if proven := strings.Contains(out.String(), "no card was charged twice"); proven != (c.wrong == "") {
				t.Errorf("printed:\n%s", out.String())
			}
		})
	}
}

// TestKillFindsEnds reports a process that has ended by itself.
func TestKillFindsEnds(t *testing.T) {
	p := newProcess(t.TempDir(), "worker", nil, "-kills", "-1")
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	<-p.exited
	if err := p.kill(); err == nil || !strings.Contains(err.Error(), "-kills 0 to 1000") {
		t.Errorf("got %v", err)
	}
}

// TestStops ends the demonstration early.
func TestStops(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := demonstrate(ctx, io.Discard, settings{orders: 50, workers: 1, kills: 1, seed: 1}); err == nil {
		t.Error("the demonstration succeeds although it was stopped")
	}
}
