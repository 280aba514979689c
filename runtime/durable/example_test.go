package durable_test

import (
	"context"
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/local"
)

type Order struct {
	ID     string
	Amount int
}

// place is a durable function.
func place(ctx durable.Context, o Order) (string, error) {
	charge, err := durable.Step(ctx, "charge", func(context.Context) (string, error) {
		return "charge-1", nil // a payment service, with ctx.ID() as the key of the request
	}, durable.Retry{Attempts: 3, Delay: time.Minute})
	if err != nil {
		return "", err
	}
	if err := durable.Sleep(ctx, 7*24*time.Hour); err != nil {
		return "", err
	}
	return durable.Step(ctx, "ship", func(context.Context) (string, error) {
		return "shipped after " + charge, nil
	})
}

// A test of a durable function runs in virtual time: a week takes no time.
func Example() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	server, err := local.New(core.Config{}, clock)
	if err != nil {
		panic(err)
	}
	n := uint64(0)
	worker, err := durable.NewWorker(durable.Config{
		Backend: server, Group: "shop", Functions: []durable.Function{durable.Func("place", place)},
		Manual: true, Now: clock, Random: func() uint64 { n++; return n }, Chance: func() float64 { return 0 },
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	h, err := durable.Start[string](ctx, worker, durable.Call{ID: "order-17", Func: "place", Arg: Order{"17", 100}, Timeout: 30 * 24 * time.Hour})
	if err != nil {
		panic(err)
	}
	for {
		for worker.Step() || server.Step() {
		}
		if result, settled, err := h.Result(ctx); settled {
			fmt.Println(now.Format(time.DateOnly), result, err)
			return
		}
		now, _ = server.Next()
	}
	// Output: 2026-01-08 shipped after charge-1 <nil>
}
