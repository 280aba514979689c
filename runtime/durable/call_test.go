package durable_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestAny waits for the first of several children. The choice is recorded: after a long
// pause, when all of them have ended, it is the same.
func TestAny(t *testing.T) {
	var chosen []int
	sleeper := durable.Func("sleep", func(ctx durable.Context, d time.Duration) (time.Duration, error) {
		return d, durable.Sleep(ctx, d)
	})
	f := durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
		var handles []durable.Awaitable
		for _, d := range []time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour} {
			h, err := durable.Start[time.Duration](ctx, nil, durable.Call{Func: "sleep", Arg: d})
			if err != nil {
				return 0, err
			}
			handles = append(handles, h)
		}
		i, err := durable.Any(ctx, handles...)
		chosen = append(chosen, i)
		if err != nil {
			return 0, err
		}
		return i, durable.Sleep(ctx, 10*time.Hour)
	})
	w := newWorld(t, 1, f, sleeper)
	w.start(0, false)
	begun := w.now
	w.call("f", "f", 1)
	w.run(nil)
	// The other children end while the execution sleeps, and wake it.
	if got := w.result("f"); got != "1" || fmt.Sprint(chosen) != "[1 1 1 1]" {
		t.Errorf("the result is %s, and Any returned %v", got, chosen)
	}
	if d := w.now.Sub(begun); d != 11*time.Hour {
		t.Errorf("the execution took %v", d)
	}
	w.check()

	// The worker is killed before a child has ended, and its successor begins when all of
	// them have. The child that was settled first is chosen, although another one is the
	// first in the list.
	chosen = nil
	w = newWorld(t, 1, f, sleeper)
	p := w.start(0, false)
	w.call("g", "f", 1)
	for w.step(nil) {
	}
	p.dead = true
	w.step(nil)
	w.functions = []durable.Function{sleeper}
	w.start(0, false)
	w.runFor(4*time.Hour, nil)
	w.functions = []durable.Function{f, sleeper}
	w.workers = nil
	w.start(0, false)
	w.runFor(time.Hour, nil)
	if fmt.Sprint(chosen) != "[1]" {
		t.Errorf("Any returned %v", chosen)
	}
}

// TestFanOut starts hundreds of children with StartAll, while the worker is killed.
func TestFanOut(t *testing.T) {
	const children = 250
	every := speed.Pick(t, 700, 137, 137)
	for killAt := 0; killAt < 2000; killAt += every {
		begun := make(map[int]int)
		w := newWorld(t, 1, durable.Func("child", func(ctx durable.Context, n int) (int, error) {
			return durable.Step(ctx, "square", func(context.Context) (int, error) { begun[n]++; return n * n, nil })
		}), durable.Func("parent", func(ctx durable.Context, _ int) (int, error) {
			calls := make([]durable.Call, children)
			for i := range calls {
				calls[i] = durable.Call{Func: "child", Arg: i}
			}
			handles, err := durable.StartAll[int](ctx, nil, calls...)
			if err != nil {
				return 0, err
			}
			squares, err := durable.All(ctx, handles...)
			sum := 0
			for _, s := range squares {
				sum += s
			}
			return sum, err
		}))
		w.start(killAt, false)
		w.call("p", "parent", 1)
		w.run(func() { w.start(0, false) })
		if got := w.result("p"); got != fmt.Sprint(children*(children-1)*(2*children-1)/6) {
			t.Errorf("killed at call %d: the result is %s", killAt, got)
		}
		for n, times := range begun {
			if times > 1+w.killed {
				t.Errorf("killed at call %d: the step of child %d ran %d times", killAt, n, times)
			}
		}
		w.check()
	}
}

// TestCallWithID starts a call with an id of its own from two executions. It runs once.
func TestCallWithID(t *testing.T) {
	for killAt := range 20 {
		ran := 0
		w := newWorld(t, 1, durable.Func("once", func(ctx durable.Context, n int) (int, error) {
			return durable.Step(ctx, "a", func(context.Context) (int, error) { ran++; return n, nil })
		}), durable.Func("f", func(ctx durable.Context, id string) (string, error) {
			h, err := durable.Start[int](ctx, nil, durable.Call{ID: id, Func: "once", Arg: 5})
			if err != nil {
				return "", err
			}
			n, err := h.Wait(ctx)
			return fmt.Sprint(h.ID(), n), err
		}))
		w.start(killAt, false)
		w.call("f", "f", "shared")
		w.run(func() { w.start(0, false) })
		w.call("g", "f", "shared")
		w.run(func() { w.start(0, false) })
		if got := w.result("f"); got != `"shared5"` || ran > 1+w.killed {
			t.Errorf("killed at call %d: the result is %s, and the step ran %d times", killAt, got, ran)
		}
		// The call belongs to the tree of the first. It is settled, so that the second has
		// its result all the same.
		if got := w.result("g"); got != `"shared5"` {
			t.Errorf("killed at call %d: the result of the second is %s", killAt, got)
		}
		w.check()
	}
}

// TestGet waits for a promise of which the function knows only the id. It is pending in the first
// activation, and settled in the next ones.
func TestGet(t *testing.T) {
	var w *world
	child := durable.Func("child", func(ctx durable.Context, n int) (int, error) { return n, durable.Sleep(ctx, time.Hour) })
	f := durable.Func("f", func(ctx durable.Context, n int) (int, error) {
		h, err := durable.Start[int](ctx, nil, durable.Call{Func: "child", Arg: n})
		if err != nil {
			return 0, err
		}
		if n, err = durable.Get[int](w.workers[0].worker, h.ID()).Wait(ctx); err != nil {
			return 0, err
		}
		n, err = durable.Step(ctx, "double", func(context.Context) (int, error) { return 2 * n, nil })
		if err != nil {
			return 0, err
		}
		return n, durable.Sleep(ctx, time.Hour)
	})
	w = newWorld(t, 1, child, f)
	w.start(0, false)
	w.call("f", "f", 5)
	w.run(nil)
	if got := w.result("f"); got != "10" {
		t.Errorf("the result is %s", got)
	}
	w.check()
}

// TestManyRecords replays an execution with more records than a server returns with an
// acquisition, in its second attempt.
func TestManyRecords(t *testing.T) {
	steps := speed.Pick(t, 1_200, 12_000, 12_000) // the preload of the core has 1,000 or 10,000
	ran, slept := 0, 0
	f := durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
		sum := 0
		for i := range steps {
			n, err := durable.Step(ctx, "add", func(context.Context) (int, error) { ran++; return i, nil })
			if err != nil {
				return 0, err
			}
			sum += n
			if i == steps/2 {
				if err := durable.Sleep(ctx, time.Hour); err != nil {
					return 0, err
				}
				slept++
			}
		}
		if ctx.Attempt() == 1 {
			return 0, errors.New("no")
		}
		return sum, nil
	})
	f.Retry = durable.Retry{Attempts: 2, Delay: time.Minute}
	w := newWorld(t, 1, f)
	w.start(0, false)
	w.call("f", "f", 1)
	w.run(nil)
	if got := w.result("f"); got != fmt.Sprint(steps*(steps-1)/2) || ran != steps || slept != 2 {
		t.Errorf("the result is %s, %d steps ran, and the function slept %d times", got, ran, slept)
	}
}

// TestLargeRecords replays an execution with few records that are larger than what a server
// returns with an acquisition.
func TestLargeRecords(t *testing.T) {
	const steps, size = 45, 100_000 // the preload of the core has 4 MiB
	ran := 0
	w := newWorld(t, 1, durable.Func("f", func(ctx durable.Context, _ int) (sum int, err error) {
		for range steps {
			text, err := durable.Step(ctx, "read", func(context.Context) (string, error) { ran++; return strings.Repeat("x", size), nil })
			if err != nil {
				return 0, err
			}
			sum += len(text)
		}
		return sum, durable.Sleep(ctx, time.Hour)
	}))
	w.start(0, false)
	w.call("f", "f", 1)
	w.run(nil)
	if got := w.result("f"); got != fmt.Sprint(steps*size) || ran != steps {
		t.Errorf("the result is %s, and %d steps ran", got, ran)
	}
}

// TestKilledWhileRecordsAreRead kills the worker that continues an execution with many records
// at its first calls: the acquisition, and the searches for the records.
func TestKilledWhileRecordsAreRead(t *testing.T) {
	const steps = 1_200 // more than preloadSmall
	for killAt := 1; killAt <= 4; killAt += speed.Pick(t, 3, 1, 1) {
		f := durable.Func("f", func(ctx durable.Context, _ int) (sum int, err error) {
			for i := range steps {
				n, err := durable.Step(ctx, "add", func(context.Context) (int, error) { return i, nil })
				if err != nil {
					return 0, err
				}
				sum += n
			}
			return sum, durable.Sleep(ctx, time.Hour)
		})
		w := newWorld(t, 1, f)
		first := w.start(0, false)
		w.call("f", "f", 1)
		w.runFor(time.Minute, nil)
		w.workers = nil
		w.disconnect(first)
		second := w.start(killAt, true)
		w.run(func() { w.start(0, false) })
		if got := w.result("f"); got != fmt.Sprint(steps*(steps-1)/2) || !second.dead {
			t.Errorf("killed at call %d (%t): the result is %s", killAt, second.dead, got)
		}
		w.check()
	}
}

// TestForms checks the form of parameters and results against values that the SDK for
// TypeScript wrote.
func TestForms(t *testing.T) {
	text := func(s string) protocol.Value {
		data := base64.StdEncoding.EncodeToString([]byte(s))
		return protocol.Value{Headers: map[string]string{}, Data: &data}
	}
	empty := ""
	w := newWorld(t, 1, durable.Func("f", func(ctx durable.Context, arg any) (string, error) { return fmt.Sprintf("%v", arg), nil }))
	w.start(0, false)
	create := func(id string, param protocol.Value) {
		op := protocol.PromiseCreate{ID: id, TimeoutAt: w.now.Add(time.Hour).UnixMilli(), Param: param, Tags: map[string]string{protocol.TagTarget: "poll://any@test"}}
		if r, err := w.server.Do(context.Background(), op); err != nil || r.Status != protocol.OK {
			t.Fatal(r, err)
		}
	}
	for id, c := range map[string]struct {
		param protocol.Value
		want  string
	}{
		"call":          {text(`{"func":"f","args":[{"a":[1,"ü"]}],"version":1}`), `"map[a:[1 ü]]"`},
		"with-retry":    {text(`{"func":"f","args":["x"],"retry":{"type":"never","data":{}},"version":1}`), `"x"`},
		"no-argument":   {text(`{"func":"f","args":[],"version":1}`), `"\u003cnil\u003e"`},
		"two-arguments": {text(`{"func":"f","args":[1,2],"version":1}`), `"1"`},
		"no-version":    {text(`{"func":"f","args":[1]}`), `"1"`},
		"no-call":       {text(`"text"`), "error: the parameter of the promise is not a call: json: cannot unmarshal string into Go value of type durable.parameter"},
		"no-json":       {text(`{`), "error: the parameter of the promise is not a call: unexpected end of JSON input"},
		"empty":         {protocol.Value{Data: &empty}, `error: the parameter of the promise calls function "" in version 0`},
		"new-version":   {text(`{"func":"f","args":[1],"version":2}`), `error: the parameter of the promise calls function "f" in version 2`},
	} {
		t.Run(id, func(t *testing.T) {
			create(id, c.param)
			for w.step(nil) {
			}
			if got := w.result(id); got != c.want {
				t.Errorf("the result is %s, want %s", got, c.want)
			}
		})
	}
	create("unknown", text(`{"func":"other","args":[],"version":1}`))
	w.runFor(10*time.Minute, nil)
	if got := w.result("unknown"); got != "pending" || w.workers[0].worker.Stats().Unknown == 0 {
		t.Errorf("an unknown function: %s, %+v", got, w.workers[0].worker.Stats())
	}

	// The form that Go writes.
	w.call("written", "other", map[string]int{"a": 1})
	var param struct {
		Func    string
		Args    []json.RawMessage
		Version int
	}
	data, err := base64.StdEncoding.DecodeString(*w.promise("written").Param.Data)
	if err == nil {
		err = json.Unmarshal(data, &param)
	}
	if err != nil || param.Func != "other" || len(param.Args) != 1 || string(param.Args[0]) != `{"a":1}` || param.Version != 1 {
		t.Errorf("the parameter is %s, %v", data, err)
	}
}

// TestResults settles promises as other programs do, and reads them.
func TestResults(t *testing.T) {
	w := newWorld(t, 1)
	for i, test := range []struct {
		state protocol.PromiseState
		data  string
		want  string
	}{
		{protocol.Resolved, `{"a":1}`, `{"a":1}`},
		{protocol.Resolved, "", "null"},
		{protocol.Rejected, `{"__type":"error","name":"TypeError","message":"no","stack":"…"}`, "error: no"},
		{protocol.Rejected, `{"__type":"aggregate_error","name":"AggregateError","message":"all","errors":[]}`, "error: all"},
		{protocol.Rejected, `{"__type":"error"}`, "error: Error"},
		{protocol.Rejected, `"text"`, "error: text"},
		{protocol.Rejected, `{"code":7}`, `error: {"code":7}`},
		{protocol.Rejected, ``, "error: Error"},
		{protocol.RejectedCancel, ``, "error: durable: the promise was canceled: context canceled"},
	} {
		id := fmt.Sprint("p", i)
		w.call(id, "none", nil)
		data := base64.StdEncoding.EncodeToString([]byte(test.data))
		settle := protocol.PromiseSettle{ID: id, State: test.state, Value: protocol.Value{Data: &data}}
		if r, err := w.server.Do(context.Background(), settle); err != nil || r.Status != protocol.OK {
			t.Fatal(r, err)
		}
		if got := w.result(id); got != test.want {
			t.Errorf("%s %s is read as %s, want %s", test.state, test.data, got, test.want)
		}
	}
	if got := w.result("missing"); !strings.HasPrefix(got, "error: durable: no such promise") {
		t.Errorf("a promise that does not exist is read as %s", got)
	}
}

// TestDeadlinesOfChildren checks that neither calls nor timers outlive the execution.
func TestDeadlinesOfChildren(t *testing.T) {
	w := newWorld(t, 1, durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
		for _, timeout := range []time.Duration{time.Minute, 0, 1000 * time.Hour} {
			if _, err := durable.Start[int](ctx, nil, durable.Call{Func: "g", External: true, Timeout: timeout}); err != nil {
				return 0, err
			}
		}
		return 0, durable.Sleep(ctx, 1000*time.Hour)
	}))
	w.start(0, false)
	begun := w.now
	if _, err := durable.Start[int](t.Context(), w.caller, durable.Call{ID: "f", Func: "f", Timeout: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for w.step(nil) {
	}
	for id, want := range map[string]time.Duration{"f": time.Hour, "f:#1": time.Minute, "f:#2": time.Hour, "f:#3": time.Hour, "f:#4": time.Hour} {
		if got := time.UnixMilli(w.promise(id).TimeoutAt).Sub(begun); got != want {
			t.Errorf("the deadline of %s is after %v, want %v", id, got, want)
		}
	}
}

// TestTimersAreNotEarly sleeps for durations, and from times, that are not whole milliseconds, as
// deadlines are.
func TestTimersAreNotEarly(t *testing.T) {
	for _, d := range []time.Duration{1, time.Millisecond - 1, 1500 * time.Microsecond, time.Second} {
		w := newWorld(t, 1, durable.Func("f", func(ctx durable.Context, _ int) (int, error) { return 1, durable.Sleep(ctx, d) }))
		w.start(0, false)
		w.now = w.now.Add(900 * time.Microsecond)
		began := w.now
		w.call("f", "f", 1)
		w.run(nil)
		if slept := w.now.Sub(began); w.result("f") != "1" || slept < d || slept >= d+time.Millisecond {
			t.Errorf("after a sleep of %v: %v, %s", d, slept, w.result("f"))
		}
	}
}

// TestOtherGroup calls a function of another group from a durable function.
func TestOtherGroup(t *testing.T) {
	w := newWorld(t, 1, durable.Func("f", func(ctx durable.Context, n int) (int, error) {
		return durable.Invoke[int](ctx, nil, durable.Call{Func: "double", Target: "poll://any@other", Arg: n})
	}))
	w.start(0, false)
	other, err := durable.NewWorker(durable.Config{
		Backend: w.server, Group: "other", Logger: w.log, Manual: true,
		Functions: []durable.Function{durable.Func("double", func(_ durable.Context, n int) (int, error) { return 2 * n, nil })},
		Now:       func() time.Time { return w.now }, Random: w.random.Uint64, Chance: w.random.Float64,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.call("f", "f", 21)
	for w.step(nil) || other.Step() {
	}
	if got := w.result("f"); got != "42" {
		t.Errorf("the result is %s", got)
	}
}
