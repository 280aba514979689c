package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// value is a step that returns its name and notes that it ran.
func value(ctx durable.Context, ran *[]string, name string) error {
	_, err := durable.Step(ctx, name, func(context.Context) (string, error) {
		*ran = append(*ran, name)
		return name, nil
	})
	return err
}

// parcel is the argument of the child.
type parcel struct{ Weight int }

// recorded is the function that the executions of TestDivergence begin with: two steps, a
// child and a long sleep.
func recorded(ran *[]string) func(durable.Context, int) (string, error) {
	return func(ctx durable.Context, _ int) (string, error) {
		if err := value(ctx, ran, "reserve"); err != nil {
			return "", err
		}
		if err := value(ctx, ran, "charge"); err != nil {
			return "", err
		}
		if _, err := durable.Start[string](ctx, nil, durable.Call{Func: "ship", Arg: parcel{Weight: 1}}); err != nil {
			return "", err
		}
		if err := durable.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		return "done", value(ctx, ran, "bill")
	}
}

// TestDivergence changes the function while an execution sleeps. The changed function must
// be halted before it runs a step, and the error names both steps. When the old function
// comes back, the execution continues.
func TestDivergence(t *testing.T) {
	tests := []struct {
		name    string
		changed func(ctx durable.Context, ran *[]string) error
		want    []string // in the error
	}{
		{"another name", func(ctx durable.Context, ran *[]string) error {
			return value(ctx, ran, "book")
		}, []string{"position 1", `calls "book"`, `place-1:#1 is of "reserve"`, "execution place-1 of place"}},
		{"a step in the middle", func(ctx durable.Context, ran *[]string) error {
			_ = value(ctx, ran, "reserve")
			return value(ctx, ran, "new")
		}, []string{"position 2", `calls "new"`, `of "charge"`}},
		{"another order", func(ctx durable.Context, ran *[]string) error {
			_ = value(ctx, ran, "charge")
			return value(ctx, ran, "reserve")
		}, []string{"position 1", `calls "charge"`, `of "reserve"`}},
		{"a sleep in place of a step", func(ctx durable.Context, ran *[]string) error {
			return durable.Sleep(ctx, time.Second)
		}, []string{"position 1", `calls "durable.Sleep"`, `of "reserve"`}},
		{"a step in place of a call", func(ctx durable.Context, ran *[]string) error {
			_ = value(ctx, ran, "reserve")
			_ = value(ctx, ran, "charge")
			return value(ctx, ran, "new")
		}, []string{"position 3", `calls "new"`, `of "durable.Call ship"`}},
		{"a call of another function", func(ctx durable.Context, ran *[]string) error {
			_ = value(ctx, ran, "reserve")
			_ = value(ctx, ran, "charge")
			_, err := durable.Start[string](ctx, nil, durable.Call{Func: "fly"})
			return err
		}, []string{"position 3", `calls "durable.Call fly"`, `of "durable.Call ship"`}},
		{"another argument of a call", func(ctx durable.Context, ran *[]string) error {
			_ = value(ctx, ran, "reserve")
			_ = value(ctx, ran, "charge")
			_, err := durable.Start[string](ctx, nil, durable.Call{Func: "ship", Arg: parcel{Weight: 2}})
			return err
		}, []string{"position 3", `calls "ship" with an argument that differs`, "record place-1:#3"}},
		{"another argument of one of several calls", func(ctx durable.Context, ran *[]string) error {
			_ = value(ctx, ran, "reserve")
			_ = value(ctx, ran, "charge")
			_, err := durable.StartAll[string](ctx, nil, durable.Call{Func: "ship", Arg: parcel{Weight: 2}})
			return err
		}, []string{"position 3", `calls "ship" with an argument that differs`, "record place-1:#3"}},
		{"an argument of another type", func(ctx durable.Context, ran *[]string) error {
			_ = value(ctx, ran, "reserve")
			_ = value(ctx, ran, "charge")
			_, err := durable.Start[string](ctx, nil, durable.Call{Func: "ship", Arg: "parcel"})
			return err
		}, []string{"position 3", `calls "ship" with an argument that differs`}},
		{"an earlier end", func(ctx durable.Context, ran *[]string) error {
			_ = value(ctx, ran, "reserve")
			return value(ctx, ran, "charge")
		}, []string{"returns after position 2", `of "durable.Call ship"`}},
		{"an earlier wait", func(ctx durable.Context, ran *[]string) error {
			_ = value(ctx, ran, "reserve")
			_ = value(ctx, ran, "charge")
			h, err := durable.Start[string](ctx, nil, durable.Call{Func: "ship", Arg: parcel{Weight: 1}})
			if err != nil {
				return err
			}
			_, err = h.Wait(ctx)
			return err
		}, []string{"after position 3 it waits", `of "durable.Sleep"`}},
		{"another type of a result", func(ctx durable.Context, ran *[]string) error {
			_, err := durable.Step(ctx, "reserve", func(context.Context) (int, error) { return 0, nil })
			return err
		}, []string{`the result of "reserve", recorded at position 1, is not of the type`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var ran []string
			w := newWorld(t, 1, durable.Func("place", recorded(&ran)))
			old := w.start(0, false)
			w.call("place-1", "place", 1)
			for w.step(nil) {
			}
			old.dead = true
			w.step(nil)
			outcome := ""
			w.functions = []durable.Function{durable.Func("place", func(ctx durable.Context, _ int) (string, error) {
				return "", test.changed(ctx, &ran)
			})}
			w.log = logTo(&outcome)
			changed := w.start(0, false)
			ran = nil
			w.runFor(2*time.Hour, nil)
			for _, text := range test.want {
				if !strings.Contains(outcome, text) {
					t.Errorf("the error is %q, without %q", outcome, text)
				}
			}
			if len(ran) > 0 {
				t.Errorf("the changed function ran the steps %v", ran)
			}
			if n := changed.worker.Stats().Diverged; n != 1 || w.result("place-1") != "pending" {
				t.Errorf("%d executions diverged, and the result is %s", n, w.result("place-1"))
			}

			// The old function comes back.
			w.workers = nil
			changed.dead = true
			w.disconnect(changed)
			w.functions = []durable.Function{durable.Func("place", recorded(&ran))}
			w.start(0, false)
			if r, err := w.server.Do(context.Background(), protocol.TaskContinue{ID: "place-1"}); err != nil || r.Status != protocol.OK {
				t.Fatalf("the task was not halted: %v %v", r, err)
			}
			w.runFor(2*time.Hour, nil)
			if got := w.result("place-1"); got != `"done"` || strings.Join(ran, " ") != "bill" {
				t.Errorf("after the old function came back, it ran %v and the result is %s", ran, got)
			}
			w.check()
		})
	}
}

// shipment writes a field that it does not read.
type shipment struct{ Tracking string }

func (s shipment) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"Tracking": s.Tracking, "URL": "https://example.com/" + s.Tracking})
}

// shipped sleeps after a step whose result is the given value, and returns what the step returned.
func shipped[T any](result T) func(durable.Context, int) (T, error) {
	return func(ctx durable.Context, _ int) (T, error) {
		got, err := durable.Step(ctx, "ship", func(context.Context) (T, error) { return result, nil })
		if err != nil {
			return got, err
		}
		return got, durable.Sleep(ctx, time.Hour)
	}
}

// TestChangedFields changes the fields of a recorded result. A field that is not read any more
// halts the execution, because the one that may replace it would be empty.
func TestChangedFields(t *testing.T) {
	before := durable.Func("f", shipped(struct{ Tracking string }{"t-1"}))
	for _, test := range []struct {
		name, want, log string
		before, after   durable.Function
	}{
		{name: "unchanged", want: `{"Tracking":"t-1"}`, before: before, after: before},
		{name: "renamed", want: "pending", log: `the result of "ship", recorded at position 1, is not of the type that it has now: json: unknown field "Tracking"`,
			before: before, after: durable.Func("f", shipped(struct{ TrackingID string }{"t-2"}))},
		{name: "renamed, with the old tag", want: `{"Tracking":"t-1"}`,
			before: before, after: durable.Func("f", shipped(struct {
				ID string `json:"Tracking"`
			}{"t-2"}))},
		{name: "added", want: `{"Tracking":"t-1","Weight":0}`,
			before: before, after: durable.Func("f", shipped(struct {
				Tracking string
				Weight   int
			}{"t-2", 7}))},
		{name: "a field that is never read", want: `{"Tracking":"t-1","URL":"https://example.com/t-1"}`,
			before: durable.Func("f", shipped(shipment{"t-1"})), after: durable.Func("f", shipped(shipment{"t-2"}))},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, 1, test.before)
			old := w.start(0, false)
			w.call("f", "f", 1)
			for w.step(nil) {
			}
			old.dead = true
			w.step(nil)
			outcome := ""
			w.log = logTo(&outcome)
			w.functions = []durable.Function{test.after}
			w.start(0, false)
			w.runFor(2*time.Hour, nil)
			if got := w.result("f"); got != test.want || !strings.Contains(outcome, test.log) {
				t.Errorf("the result is %s, and the log is %s", got, outcome)
			}
		})
	}
}

// calling sleeps after a call with the given argument.
func calling(arg any) durable.Function {
	return durable.Func("f", func(ctx durable.Context, _ int) (string, error) {
		_, err := durable.Start[string](ctx, nil, durable.Call{Func: "g", Arg: arg, External: true})
		if err != nil {
			return "", err
		}
		return "called", durable.Sleep(ctx, time.Hour)
	})
}

// TestChangedArguments changes the type of the argument of a recorded call. The call may only
// be used again if its argument reads the same.
func TestChangedArguments(t *testing.T) {
	type fragile struct {
		Weight  int
		Fragile bool
	}
	for name, test := range map[string]struct {
		before, after any
		want          string
	}{
		"unchanged":          {parcel{1}, parcel{1}, `"called"`},
		"a pointer":          {parcel{1}, &parcel{1}, `"called"`},
		"an added field":     {parcel{1}, fragile{Weight: 1}, `"called"`},
		"an added field set": {parcel{1}, fragile{1, true}, "pending"},
		"a removed field":    {fragile{1, true}, parcel{1}, `"called"`},
		"another value":      {parcel{1}, parcel{2}, "pending"},
		"no argument":        {parcel{1}, nil, "pending"},
		"a new argument":     {nil, parcel{1}, "pending"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, calling(test.before))
			old := w.start(0, false)
			w.call("f", "f", 1)
			for w.step(nil) {
			}
			old.dead = true
			w.step(nil)
			w.functions = []durable.Function{calling(test.after)}
			w.start(0, false)
			w.runFor(2*time.Hour, nil)
			if got := w.result("f"); got != test.want {
				t.Errorf("the result is %s, want %s", got, test.want)
			}
		})
	}
}

// TestDivergenceOfAnID changes the id of a call that the execution has made.
func TestDivergenceOfAnID(t *testing.T) {
	outcome := ""
	calls := 0
	w := newWorld(t, 1, durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
		calls++
		if _, err := durable.Start[int](ctx, nil, durable.Call{ID: fmt.Sprint("order-", calls), Func: "g", External: true}); err != nil {
			return 0, err
		}
		return 1, durable.Sleep(ctx, time.Hour)
	}))
	w.log = logTo(&outcome)
	w.start(0, false)
	w.call("f", "f", 1)
	w.runFor(2*time.Hour, nil)
	want := `at position 1 it calls g with the id "order-2", and the recorded id is "order-1"`
	if w.result("f") != "pending" || !strings.Contains(outcome, want) || w.promise("order-2") != nil {
		t.Errorf("the result is %s, and the log is %s, without %q", w.result("f"), outcome, want)
	}
}

// TestForeignRecord creates a promise with the id of the first record of an execution, as another
// program could. Its result is not taken for that of the call.
func TestForeignRecord(t *testing.T) {
	for name, use := range map[string]func(ctx durable.Context) (any, error){
		"step":  func(ctx durable.Context) (any, error) { return value(ctx, new([]string), "a"), nil },
		"sleep": func(ctx durable.Context) (any, error) { return nil, durable.Sleep(ctx, time.Hour) },
		"start": func(ctx durable.Context) (any, error) {
			return durable.Invoke[any](ctx, nil, durable.Call{Func: "g", External: true})
		},
		"start all": func(ctx durable.Context) (any, error) {
			h, err := durable.StartAll[any](ctx, nil, durable.Call{Func: "g", External: true})
			if err != nil {
				return nil, err
			}
			return h[0].Wait(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, durable.Function{Name: "f", Run: func(ctx durable.Context, _ json.RawMessage) (any, error) { return use(ctx) }})
			outcome := ""
			w.log = logTo(&outcome)
			for _, op := range []protocol.Operation{
				protocol.PromiseCreate{ID: "f:#1", TimeoutAt: 1 << 50, Tags: map[string]string{"topogen:step": "a"}},
				protocol.PromiseSettle{ID: "f:#1", State: protocol.Resolved},
			} {
				if r, err := w.server.Do(t.Context(), op); err != nil || r.Status != protocol.OK {
					t.Fatal(r, err)
				}
			}
			w.start(0, false)
			w.call("f", "f", 1)
			w.runFor(2*time.Hour, nil)
			if want := "the id f:#1 of its record is taken: the promise was made by"; w.result("f") != "pending" || !strings.Contains(outcome, want) {
				t.Errorf("the result is %s, and the log is %s, without %q", w.result("f"), outcome, want)
			}
		})
	}
}

// TestVersion changes a function with Version, for an execution that has begun before.
func TestVersion(t *testing.T) {
	var ran []string
	oldFunction := func(ctx durable.Context, _ int) (string, error) {
		_ = value(ctx, &ran, "reserve")
		_ = value(ctx, &ran, "truck")
		_ = durable.Sleep(ctx, time.Hour)
		return "old", nil
	}
	changed := func(least, most int) func(durable.Context, int) (string, error) {
		return func(ctx durable.Context, _ int) (string, error) {
			_ = value(ctx, &ran, "reserve")
			v := ctx.Version("ship by", least, most)
			switch v {
			case 1:
				_ = value(ctx, &ran, "truck")
			case 2:
				_ = value(ctx, &ran, "plane")
			default:
				_ = value(ctx, &ran, "rocket")
			}
			_ = durable.Sleep(ctx, time.Hour)
			if ctx.Version("ship by", least, most) != v {
				t.Error("Version has returned two values")
			}
			return []string{"", "truck", "plane", "rocket"}[v], nil
		}
	}
	w := newWorld(t, 1)
	p := (*process)(nil)
	deploy := func(f func(durable.Context, int) (string, error)) {
		if p != nil {
			p.dead = true
			w.step(nil)
		}
		w.functions = []durable.Function{durable.Func("place", f)}
		p = w.start(0, false)
		for w.step(nil) {
		}
	}
	deploy(oldFunction)
	begin := func(id string) {
		w.call(id, "place", 1)
		for w.step(nil) {
		}
	}
	begin("place-1")
	deploy(changed(1, 2))
	begin("place-2")
	deploy(changed(1, 3))
	begin("place-3")
	w.run(nil)
	for id, want := range map[string]string{"place-1": `"truck"`, "place-2": `"plane"`, "place-3": `"rocket"`} {
		if got := w.result(id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	if got := strings.Join(ran, " "); got != "reserve truck reserve plane reserve rocket" {
		t.Errorf("the steps %s ran", got)
	}

	// An execution with a version that the program no longer supports, or not yet, is halted.
	for _, c := range []struct {
		id          string
		least, most int
	}{{"place-4", 4, 5}, {"place-5", 1, 2}} {
		deploy(changed(1, 3))
		begin(c.id)
		outcome := ""
		w.log = logTo(&outcome)
		deploy(changed(c.least, c.most))
		w.runFor(2*time.Hour, nil)
		if want := fmt.Sprintf(`supports the versions %d to %d of "ship by", and it began with version 3`, c.least, c.most); w.result(c.id) != "pending" || !strings.Contains(outcome, want) {
			t.Errorf("the result of %s is %s, and the log is %s, want %s", c.id, w.result(c.id), outcome, want)
		}
	}
}
