package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable"
)

// TestMisuse uses a context in ways that would make replays differ. The execution
// fails, even if the function ignores the error, and is not attempted again.
func TestMisuse(t *testing.T) {
	elsewhere := func(f func() error) (err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			err = f()
		}()
		<-done
		return err
	}
	step := func(ctx durable.Context, name string) error {
		_, err := durable.Step(ctx, name, func(context.Context) (int, error) { return 1, nil })
		return err
	}
	tests := []struct {
		name string
		use  func(ctx durable.Context) error
		want string
	}{
		{"a step in a step", func(ctx durable.Context) (err error) {
			_, _ = durable.Step(ctx, "outer", func(context.Context) (int, error) {
				err = step(ctx, "inner")
				return 1, nil
			})
			return err
		}, "inside a step, or in another goroutine"},
		{"a sleep in a step", func(ctx durable.Context) (err error) {
			_, _ = durable.Step(ctx, "outer", func(context.Context) (int, error) {
				err = durable.Sleep(ctx, time.Hour)
				return 1, nil
			})
			return err
		}, "inside a step"},
		{"a wait in a step", func(ctx durable.Context) (err error) {
			h, _ := durable.Start[int](ctx, nil, durable.Call{Func: "g", External: true})
			_, _ = durable.Step(ctx, "outer", func(c context.Context) (int, error) {
				_, err = h.Wait(c)
				return 1, nil
			})
			return err
		}, "inside a step"},
		{"another goroutine", func(ctx durable.Context) error {
			return elsewhere(func() error { return step(ctx, "a") })
		}, "in a goroutine that does not run the function"},
		{"a wait in another goroutine", func(ctx durable.Context) error {
			h, _ := durable.Start[int](ctx, nil, durable.Call{Func: "g", External: true})
			return elsewhere(func() error { _, err := h.Wait(ctx); return err })
		}, "in a goroutine that does not run the function"},
		{"a context with a timeout", func(ctx durable.Context) error {
			h, _ := durable.Start[int](ctx, nil, durable.Call{Func: "g", External: true})
			c, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			_, err := h.Wait(c)
			return err
		}, "Use After and Any for a timeout"},
		{"a look at a result", func(ctx durable.Context) error {
			h, _ := durable.Start[int](ctx, nil, durable.Call{Func: "g", External: true})
			_, _, err := h.Result(ctx)
			return err
		}, "Result is called in a durable function"},
		{"a reserved name", func(ctx durable.Context) error { return step(ctx, "durable.Now") }, "not a name for a step"},
		{"no name", func(ctx durable.Context) error { return step(ctx, "") }, "not a name for a step"},
		{"any of nothing", func(ctx durable.Context) error { _, err := durable.Any(ctx); return err }, "without a handle"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var returned error
			attempts := 0
			f := durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
				attempts = ctx.Attempt()
				returned = test.use(ctx)
				return 1, nil
			})
			f.Retry = durable.Retry{Attempts: 3, Delay: time.Minute}
			w := newWorld(t, 1, f)
			w.start(0, false)
			w.call("f", "f", 1)
			w.run(nil)
			if !errors.Is(returned, durable.ErrMisuse) || attempts != 1 {
				t.Errorf("the call returned %v in attempt %d", returned, attempts)
			}
			if got := w.result("f"); !strings.Contains(got, test.want) || !strings.HasPrefix(got, "error: durable: wrong use of a durable context: f: ") {
				t.Errorf("the result is %s, without %q", got, test.want)
			}
		})
	}
}

// TestHandles uses handles that have no worker or no promise, within and outside of durable
// functions.
func TestHandles(t *testing.T) {
	type results struct{ wait, result, cancel string }
	use := func(ctx context.Context, h durable.Handle[int]) (r results) {
		n, err := h.Wait(ctx)
		r.wait = fmt.Sprint(n, " ", err)
		if !durable.Within(ctx) {
			n, settled, err := h.Result(ctx)
			r.result = fmt.Sprint(n, " ", settled, " ", err)
		}
		r.cancel = fmt.Sprint(h.Cancel(ctx))
		return r
	}
	seven, err := durable.Resolved("seven", 7)
	if err != nil {
		t.Fatal(err)
	}
	const (
		notStarted = "durable: no such promise: the handle is of a call that was not started"
		noWorker   = "durable: the handle has no worker that could ask the server: pass one to Get"
	)
	for name, test := range map[string]struct {
		handle  durable.Handle[int]
		outside results
		within  string // Wait in a durable function
	}{
		"the zero value":       {durable.Handle[int]{}, results{"0 " + notStarted, "0 false " + notStarted, notStarted}, "0 " + notStarted},
		"of Resolved":          {seven, results{"7 <nil>", "7 true <nil>", "<nil>"}, "7 <nil>"},
		"of Get, no worker":    {durable.Get[int](nil, "f"), results{"0 " + noWorker, "0 false " + noWorker, noWorker}, ""},
		"of Get in a function": {durable.Get[int](nil, "done"), results{"0 " + noWorker, "0 false " + noWorker, noWorker}, "5 <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := use(t.Context(), test.handle); got != test.outside {
				t.Errorf("outside: %+v", got)
			}
			if test.within == "" {
				return
			}
			within := ""
			done := durable.Func("done", func(durable.Context, int) (int, error) { return 5, nil })
			w := newWorld(t, 1, done, durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
				within = use(ctx, test.handle).wait
				return 1, nil
			}))
			w.start(0, false)
			w.call("done", "done", 1)
			w.run(nil)
			w.call("f", "f", 1)
			w.run(nil)
			if got := w.result("f"); got != "1" || within != test.within {
				t.Errorf("within: %s, the result is %s", within, got)
			}
		})
	}
}

// TestContextAfterTheEnd uses a context that a function has leaked.
func TestContextAfterTheEnd(t *testing.T) {
	var leaked durable.Context
	w := newWorld(t, 1, durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
		leaked = ctx
		return 1, durable.Sleep(ctx, time.Hour)
	}))
	w.start(0, false)
	w.call("f", "f", 1)
	for w.step(nil) {
	}
	if err := durable.Sleep(leaked, time.Second); !errors.Is(err, durable.ErrEnded) {
		t.Errorf("Sleep of a suspended execution returned %v", err)
	}
	func() {
		defer func() {
			if err, ok := recover().(error); !ok || !errors.Is(err, durable.ErrEnded) {
				t.Errorf("Now of a suspended execution panicked with %v", err)
			}
		}()
		durable.Now(leaked)
	}()
	if leaked.Err() == nil {
		t.Error("the context of a suspended execution has not ended")
	}
	w.run(nil)
	if _, err := durable.Step(leaked, "a", func(context.Context) (int, error) { return 1, nil }); !errors.Is(err, durable.ErrEnded) {
		t.Errorf("Step after the end returned %v", err)
	}
}

// TestSuspensionRunsDeferredFunctions suspends a function below deferred functions that
// recover, make durable calls and panic.
func TestSuspensionRunsDeferredFunctions(t *testing.T) {
	var events []string
	note := func(text string, args ...any) { events = append(events, fmt.Sprintf(text, args...)) }
	w := newWorld(t, 1, durable.Func("f", func(ctx durable.Context, _ int) (result string, err error) {
		note("begin")
		defer func() { note("last: %v %v", result, err) }()
		defer func() { panic("in a deferred function") }()
		defer func() {
			note("durable call")
			_, err := durable.Step(ctx, "cleanup", func(context.Context) (int, error) { note("cleanup"); return 1, nil })
			note("durable call returned %v", err)
		}()
		defer func() { note("recovered %v, context %v", recover(), ctx.Err() != nil) }()
		_ = durable.Sleep(ctx, time.Hour)
		note("slept")
		return "done", nil
	}))
	outcome := ""
	w.log = logTo(&outcome)
	p := w.start(0, false)
	w.call("f", "f", 1)
	for w.step(nil) {
	}
	if s := p.worker.Stats(); s.Suspended != 1 || s.Released != 0 {
		t.Errorf("the figures are %+v", s)
	}
	want := []string{"begin", "recovered <nil>, context true", "durable call", "last:  <nil>"}
	if fmt.Sprint(events) != fmt.Sprint(want) {
		t.Errorf("while the function was suspended, the events were %q, want %q", events, want)
	}
	if !strings.Contains(outcome, "a deferred function panicked") {
		t.Errorf("the panic of a deferred function was not reported: %s", outcome)
	}
	events = nil
	w.run(nil)
	want = []string{"begin", "slept", "recovered <nil>, context false", "durable call", "cleanup", "durable call returned <nil>", "last: done <nil>"}
	if fmt.Sprint(events) != fmt.Sprint(want) {
		t.Errorf("at the end the events were %q, want %q", events, want)
	}
	if got := w.result("f"); got != "error: panic: in a deferred function" {
		t.Errorf("the result is %s", got)
	}
}

// TestGoexitOfTheUser ends the goroutine of a function as t.FailNow does.
func TestGoexitOfTheUser(t *testing.T) {
	w := newWorld(t, 1, durable.Func("f", func(durable.Context, int) (int, error) {
		goexit()
		return 1, nil
	}))
	w.start(0, false)
	w.call("f", "f", 1)
	w.run(nil)
	if got := w.result("f"); got != "error: durable: the function called runtime.Goexit" {
		t.Errorf("the result is %s", got)
	}
}

// TestReturnDuringACall returns while another goroutine is in a step.
func TestReturnDuringACall(t *testing.T) {
	entered, returned := make(chan struct{}), make(chan struct{})
	w := newWorld(t, 1, durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
		if err := durable.Sleep(ctx, time.Hour); err != nil {
			return 0, err
		}
		go func() {
			defer close(returned)
			_, _ = durable.Step(ctx, "a", func(context.Context) (int, error) {
				close(entered)
				return 1, nil
			})
		}()
		<-returned // a step in another goroutine is refused before it runs
		return 1, nil
	}))
	w.start(0, false)
	w.call("f", "f", 1)
	w.run(nil)
	select {
	case <-entered:
		t.Error("a step ran in another goroutine")
	default:
	}
	if got := w.result("f"); !strings.Contains(got, "does not run the function") {
		t.Errorf("the result is %s", got)
	}
}

type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { panic("in MarshalJSON") }

type badError struct{}

func (badError) Error() string { panic("in Error") }

// TestPanicsAtTheEnd panics in code of the user that runs after the function has returned.
func TestPanicsAtTheEnd(t *testing.T) {
	for name, test := range map[string]struct {
		run       func() (any, error)
		rejecting func(*durable.Activation, error)
		want      string
	}{
		"in the result":   {func() (any, error) { return badJSON{}, nil }, nil, "error: panic: in MarshalJSON"},
		"in the error":    {func() (any, error) { return nil, badError{} }, nil, "error: panic: in Error"},
		"in Rejecting":    {func() (any, error) { return nil, errors.New("no") }, func(*durable.Activation, error) { panic("in Rejecting") }, "error: panic: in Rejecting"},
		"a large result":  {func() (any, error) { return strings.Repeat("x", 4<<20), nil }, nil, "error: the result cannot be encoded as JSON: it has 4194306 bytes, and the limit is 3096576"},
		"not UTF-8":       {func() (any, error) { return []string{"a\xffb"}, nil }, nil, "error: the result cannot be encoded as JSON: a string in it is not valid UTF-8; use []byte"},
		"after a slash":   {func() (any, error) { return `\` + "\xff", nil }, nil, "error: the result cannot be encoded as JSON: a string in it is not valid UTF-8; use []byte"},
		"text of escapes": {func() (any, error) { return "\uFFFD" + `\ufffd \\ufffd`, nil }, nil, `"` + "\uFFFD" + `\\ufffd \\\\ufffd"`},
		"a name of bytes": {func() (any, error) { return nil, &durable.Error{Name: "\xff", Message: "m"} }, nil, "error: m"},
		"a result as big": {func() (any, error) { return strings.Repeat("x", 3096574), nil }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, durable.Function{Name: "f", Rejecting: test.rejecting, Run: func(durable.Context, json.RawMessage) (any, error) { return test.run() }})
			w.start(0, false)
			w.call("f", "f", 1)
			w.run(nil)
			if got := w.result("f"); got != test.want && (test.want != "" || len(got) != 3096576) {
				t.Errorf("the result is %.200s", got)
			}
		})
	}
}
