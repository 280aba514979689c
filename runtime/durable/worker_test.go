package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable"
)

type order struct {
	ID     string
	Amount int
}

// placeOrder is a workflow with each kind of durable call. ran counts the runs of its
// steps.
func placeOrder(ran map[string]int, record func(id, step string)) durable.Function {
	step := func(ctx durable.Context, name string) (string, error) {
		return durable.Step(ctx, name, func(context.Context) (string, error) {
			ran[name]++
			if record != nil {
				record(ctx.ID(), name)
			}
			return name + " of " + ctx.ID(), nil
		})
	}
	return durable.Func("place", func(ctx durable.Context, o order) (string, error) {
		reserved, err := step(ctx, "reserve")
		if err != nil {
			return "", err
		}
		_, err = durable.Step(ctx, "charge", func(context.Context) (int, error) {
			ran["charge"]++
			return 0, &durable.Error{Name: "Declined", Message: "no money"}
		})
		if !errors.Is(err, &durable.Error{Name: "Declined"}) {
			return "", fmt.Errorf("the charge returned %v", err)
		}
		before := durable.Now(ctx)
		if err := durable.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		slept := durable.Now(ctx).Sub(before)
		var parcels []durable.Handle[string]
		for i := range 3 {
			h, err := durable.Start[string](ctx, nil, durable.Call{Func: "ship", Arg: i})
			if err != nil {
				return "", err
			}
			parcels = append(parcels, h)
		}
		first, err := durable.Any(ctx, parcels[2], parcels[1])
		if err != nil {
			return "", err
		}
		_ = first // depends on time
		shipped, err := durable.All(ctx, parcels...)
		if err != nil {
			return "", err
		}
		if _, err := step(ctx, "bill"); err != nil {
			return "", err
		}
		return fmt.Sprint(reserved, " ", slept >= time.Hour, " ", shipped, " v", ctx.Version("bill", 1, 2)), nil
	})
}

var ship = durable.Func("ship", func(ctx durable.Context, n int) (string, error) {
	if err := durable.Sleep(ctx, time.Duration(3-n)*time.Minute); err != nil {
		return "", err
	}
	return durable.Step(ctx, "parcel", func(context.Context) (string, error) { return fmt.Sprint("parcel ", n), nil })
})

const placed = `"reserve of shop:a:1 true [parcel 0 parcel 1 parcel 2] v2"`

func TestWorkflow(t *testing.T) {
	ran := make(map[string]int)
	w := newWorld(t, 1, placeOrder(ran, nil), ship)
	w.start(0, false)
	w.call("shop:a:1", "place", order{"1", 10})
	w.run(nil)
	if got := w.result("shop:a:1"); got != placed {
		t.Errorf("the result is %s, want %s", got, placed)
	}
	for _, step := range []string{"reserve", "charge", "bill"} {
		if ran[step] != 1 {
			t.Errorf("step %s ran %d times", step, ran[step])
		}
	}
	w.check()
}

// TestKilledAtEachCall kills the worker at each call of its backend, before and after the
// call takes effect. Its successor must return the same result, and no step may run whose
// result is on disk.
func TestKilledAtEachCall(t *testing.T) {
	for _, before := range []bool{true, false} {
		for killAt := 1; ; killAt++ {
			ran := make(map[string]int)
			var w *world
			record := func(id, step string) {
				position := map[string]int{"reserve": 1, "bill": 10}[step]
				if p := w.promise(fmt.Sprint(id, ":#", position)); p != nil && p.State != "pending" {
					t.Errorf("killed at call %d (before: %v): step %s ran, although its result is on disk", killAt, before, step)
				}
			}
			w = newWorld(t, 1, placeOrder(ran, record), ship)
			w.start(killAt, before)
			w.call("shop:a:1", "place", order{"1", 10})
			w.run(func() { w.start(0, false) })
			if got := w.result("shop:a:1"); got != placed {
				t.Fatalf("killed at call %d (before: %v): the result is %s, want %s", killAt, before, got, placed)
			}
			for step, n := range ran {
				if n > 1+w.killed {
					t.Errorf("killed at call %d (before: %v): step %s ran %d times", killAt, before, step, n)
				}
			}
			w.check()
			if w.killed == 0 {
				if killAt < 20 {
					t.Errorf("the worker made only %d calls", killAt)
				}
				break
			}
		}
	}
}
