package durable_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/topo"
)

// TestAttempts lets an attempt fail after a step failed. The next attempt replays the step
// before it, and runs the failed step and everything after it again, under new ids.
func TestAttempts(t *testing.T) {
	for _, delay := range []time.Duration{time.Minute, 0} { // 0: all attempts are in one activation
		t.Run(delay.String(), func(t *testing.T) { testAttempts(t, delay) })
	}
}

func testAttempts(t *testing.T, delay time.Duration) {
	var ran []string
	f := durable.Func("place", func(ctx durable.Context, _ int) (string, error) {
		note := func(name string, err error) error {
			_, err = durable.Step(ctx, name, func(context.Context) (int, error) {
				ran = append(ran, fmt.Sprint(name, ctx.Attempt()))
				return 0, err
			})
			return err
		}
		if err := note("reserve", nil); err != nil {
			return "", err
		}
		if ctx.Attempt() < 3 {
			_ = note("charge", fs.ErrPermission)
		} else {
			_ = note("charge", nil)
		}
		if err := note("bill", nil); err != nil {
			return "", err
		}
		if n := topo.Attempt(ctx); n < 3 {
			return "", fmt.Errorf("attempt %d failed", n)
		}
		return "done", nil
	})
	f.Retry = durable.Retry{Attempts: 3, Delay: delay}
	w := newWorld(t, 1, f)
	w.start(0, false)
	begun := w.now
	w.call("place-1", "place", 1)
	w.run(nil)
	if got := w.result("place-1"); got != `"done"` {
		t.Errorf("the result is %s", got)
	}
	if got, want := strings.Join(ran, " "), "reserve1 charge1 bill1 charge2 bill2 charge3 bill3"; got != want {
		t.Errorf("the steps %s ran, want %s", got, want)
	}
	if d := w.now.Sub(begun); d != 3*delay {
		t.Errorf("the delays before the attempts are %v in all, want %v and twice as much", d, delay)
	}
	for id, state := range map[string]string{
		"place-1:#1": "resolved", "place-1:#2": "rejected", "place-1:#3": "resolved",
		"place-1:#~2": "resolved", "place-1:#2~2": "rejected", "place-1:#3~2": "resolved",
		"place-1:#~3": "resolved", "place-1:#2~3": "resolved", "place-1:#3~3": "resolved",
	} {
		if p := w.promise(id); p == nil || string(p.State) != state {
			t.Errorf("the record %s is %v, want %s", id, p, state)
		}
	}
	if w.promise("place-1:#1~2") != nil {
		t.Error("attempt 2 has recorded the step before the failure again")
	}
	w.check()
}

// TestAttemptAfterAWaitWithoutSuspension begins the second attempt in the activation of the
// first, which has waited for a child that had ended by then.
func TestAttemptAfterAWaitWithoutSuspension(t *testing.T) {
	var w *world
	var other *process
	ran := 0
	f := durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
		h, err := durable.Start[int](ctx, nil, durable.Call{Func: "child", Arg: 5})
		if err != nil {
			return 0, err
		}
		_, err = durable.Step(ctx, "pause", func(context.Context) (int, error) {
			for other.worker.Step() {
			}
			return 0, nil
		})
		if err != nil {
			return 0, err
		}
		n, err := h.Wait(ctx)
		if err != nil {
			return 0, err
		}
		n, err = durable.Step(ctx, "double", func(context.Context) (int, error) { ran++; return 2 * n, nil })
		if ctx.Attempt() == 1 {
			return 0, errors.New("no")
		}
		return n, err
	})
	f.Retry = durable.Retry{Attempts: 2}
	child := durable.Func("child", func(_ durable.Context, n int) (int, error) { return n, nil })
	w = newWorld(t, 1, f)
	p := w.start(0, false)
	w.call("f", "f", 1)
	for range 2 { // connect, and receive the task before the other worker is there
		w.step(nil)
	}
	w.functions = []durable.Function{child}
	other = w.start(0, false)
	other.worker.Step() // connect
	w.run(nil)
	if got := w.result("f"); got != "10" || ran != 1 || p.worker.Stats().Activations != 1 {
		t.Errorf("the result is %s, the step ran %d times, and the figures are %+v", got, ran, p.worker.Stats())
	}
}

// TestAttemptCallsAgain lets a child fail. The next attempt sees the records before the call, and
// makes the call and everything after it again.
func TestAttemptCallsAgain(t *testing.T) {
	called, ran := 0, ""
	child := durable.Func("child", func(_ durable.Context, n int) (int, error) {
		if called++; called < 3 {
			return 0, errors.New("not yet")
		}
		return n, nil
	})
	f := durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
		note := func(name string) error {
			_, err := durable.Step(ctx, name, func(context.Context) (int, error) { ran += fmt.Sprint(name, ctx.Attempt(), " "); return 0, nil })
			return err
		}
		if err := note("before"); err != nil {
			return 0, err
		}
		h, err := durable.Start[int](ctx, nil, durable.Call{Func: "child", Arg: 5})
		if err != nil {
			return 0, err
		}
		if err := note("between"); err != nil {
			return 0, err
		}
		return h.Wait(ctx)
	})
	f.Retry = durable.Retry{Attempts: 3, Delay: time.Minute}
	w := newWorld(t, 1, child, f)
	w.start(0, false)
	w.call("f", "f", 1)
	w.run(nil)
	if got, want := w.result("f"), "before1 between1 between2 between3 "; got != "5" || called != 3 || ran != want {
		t.Errorf("the result is %s, the child was called %d times, and the steps %sran, want %s", got, called, ran, want)
	}
	w.check()
}

// TestDelayOutlastsOldWaits settles a promise for which the first attempt has waited, while the
// second attempt is delayed.
func TestDelayOutlastsOldWaits(t *testing.T) {
	const delay = 10 * time.Hour
	var w *world
	var begun []time.Time
	slow := durable.Func("slow", func(ctx durable.Context, _ int) (int, error) { return 7, durable.Sleep(ctx, 2*time.Hour) })
	f := durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
		if n := ctx.Attempt(); n > len(begun) {
			begun = append(begun, w.now)
		}
		child, err := durable.Start[int](ctx, nil, durable.Call{Func: "slow"})
		if err != nil {
			return 0, err
		}
		timer, err := durable.After(ctx, time.Hour)
		if err != nil {
			return 0, err
		}
		first, err := durable.Any(ctx, child, timer)
		if err == nil && ctx.Attempt() == 1 {
			err = errors.New("no")
		}
		return first, err
	})
	f.Retry = durable.Retry{Attempts: 2, Delay: delay}
	w = newWorld(t, 1, slow, f)
	w.start(0, false)
	w.call("f", "f", 1)
	w.run(nil)
	if got := w.result("f"); got != "1" || len(begun) != 2 || begun[1].Sub(begun[0]) != time.Hour+delay {
		t.Errorf("the result is %s, and the attempts began at %v", got, begun)
	}
	w.check()
}

// TestLongestSleep sleeps for the longest duration: until the deadline of the execution.
func TestLongestSleep(t *testing.T) {
	f := durable.Func("f", func(ctx durable.Context, _ int) (int, error) { return 0, durable.Sleep(ctx, math.MaxInt64) })
	w := newWorld(t, 1, f)
	w.start(0, false)
	w.call("f", "f", 1)
	w.runFor(time.Hour, nil)
	if got := w.result("f"); got != "pending" {
		t.Errorf("the result after an hour is %s", got)
	}
	w.check()
}

// TestFailures checks what is recorded for each way in which a function can fail.
func TestFailures(t *testing.T) {
	tests := []struct {
		name     string
		run      func(ctx durable.Context) error
		attempts int
		want     string
		ran      int
	}{
		{"an error", func(durable.Context) error { return errors.New("no") }, 3, "error: no", 3},
		{"without retry", func(durable.Context) error { return errors.New("no") }, 0, "error: no", 1},
		{"a final error", func(durable.Context) error { return durable.Final(errors.New("never")) }, 3, "error: never", 1},
		{"a wrapped final error", func(durable.Context) error { return fmt.Errorf("a: %w", durable.Final(errors.New("b"))) }, 3, "error: a: b", 1},
		{"the final error of a step", func(ctx durable.Context) error {
			_, err := durable.Step(ctx, "a", func(context.Context) (int, error) { return 0, durable.Final(errors.New("never")) })
			return fmt.Errorf("a: %w", err)
		}, 3, "error: a: never", 1},
		{"a panic", func(durable.Context) error { panic("boom") }, 2, "error: panic: boom", 2},
		{"a panic in a step", func(ctx durable.Context) error {
			_, err := durable.Step(ctx, "a", func(context.Context) (int, error) { panic("boom") })
			return errors.Join(err, errors.New("continued"))
		}, 2, "error: panic: boom", 2},
		{"a long message", func(durable.Context) error { return errors.New(strings.Repeat("x", 100_000)) }, 1, "error: " + strings.Repeat("x", 16<<10) + "…", 1},
		{"a result that is not JSON", func(ctx durable.Context) error {
			_, err := durable.Step(ctx, "a", func(context.Context) (func(), error) { return nil, nil })
			return err
		}, 1, "error: the result of the step cannot be encoded as JSON: json: unsupported type: func()", 1},
		{"a result that cannot be read", func(ctx durable.Context) error {
			_, err := durable.Step(ctx, "a", func(context.Context) (struct{ Why error }, error) {
				return struct{ Why error }{errors.New("why")}, nil
			})
			return err
		}, 3, "error: the result of the step cannot be read again from JSON: json: cannot unmarshal object into Go struct field .Why of type error", 1},
		{"a name", func(ctx durable.Context) error {
			_, err := durable.Step(ctx, "a", func(context.Context) (int, error) {
				return 0, &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
			})
			var e *durable.Error
			if !errors.As(err, &e) || e.Name != "PathError" || errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("Step returned %#v", err)
			}
			return err
		}, 1, "error: open x: file does not exist", 1},
		{"the wrong argument", nil, 3, "error: durable: the argument of the call does not fit: json: cannot unmarshal string into Go value of type int", 0},
		{"too many records", func(ctx durable.Context) error {
			for range 600 {
				if err := durable.Sleep(ctx, -1); err != nil {
					return err
				}
			}
			return nil
		}, 3, "error: durable: the execution has too many records: f has reached the limit of 500. Let it start a child that continues its work", 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ran := 0
			f := durable.Func("fail", func(ctx durable.Context, _ int) (int, error) {
				ran++
				return 0, test.run(ctx)
			})
			f.Retry = durable.Retry{Attempts: test.attempts}
			var rejected error
			f.Rejecting = func(_ *durable.Activation, err error) { rejected = err }
			w := newWorld(t, 1, f)
			w.records = 500
			w.start(0, false)
			if test.run == nil {
				w.call("f", "fail", "text")
			} else {
				w.call("f", "fail", 1)
			}
			w.run(nil)
			if got := w.result("f"); got != test.want {
				t.Errorf("the result is %s, want %s", got, test.want)
			}
			if ran != test.ran {
				t.Errorf("the function ran %d times, want %d", ran, test.ran)
			}
			if rejected == nil {
				t.Error("Rejecting was not called")
			}
			w.check()
		})
	}
}

// TestStepRetry counts the attempts at a step whose delays are on disk, while the worker is
// killed between them.
func TestStepRetry(t *testing.T) {
	for killAt := 0; killAt < 12; killAt++ {
		ran := 0
		w := newWorld(t, 1, durable.Func("f", func(ctx durable.Context, _ int) (string, error) {
			_, err := durable.Step(ctx, "a", func(context.Context) (int, error) {
				ran++
				return 0, fmt.Errorf("failure %d", ran)
			}, durable.Retry{Attempts: 4, Delay: time.Hour, MaxDelay: 2 * time.Hour})
			return fmt.Sprint(err), nil
		}))
		w.start(killAt, false)
		begun := w.now
		w.call("f", "f", 1)
		w.run(func() { w.start(0, false) })
		if ran < 4 || ran > 4+w.killed || w.result("f") != fmt.Sprintf(`"failure %d"`, ran) {
			t.Errorf("killed at call %d: the step ran %d times, and the result is %s", killAt, ran, w.result("f"))
		}
		if d := w.now.Sub(begun); d < 5*time.Hour || d > 5*time.Hour+2*w.lease {
			t.Errorf("killed at call %d: the attempts took %v, want 1h, 2h and 2h", killAt, d)
		}
		w.check()
	}
}

// TestFinalErrorOfAStep retries a step until its error is final.
func TestFinalErrorOfAStep(t *testing.T) {
	ran := 0
	w := newWorld(t, 1, durable.Func("f", func(ctx durable.Context, _ int) (string, error) {
		_, err := durable.Step(ctx, "a", func(context.Context) (int, error) {
			if ran++; ran == 2 {
				return 0, durable.Final(errors.New("never"))
			}
			return 0, errors.New("later")
		}, durable.Retry{Attempts: 5, Delay: time.Minute})
		return fmt.Sprint(err), nil
	}))
	w.start(0, false)
	w.call("f", "f", 1)
	w.run(nil)
	if got := w.result("f"); got != `"never"` || ran != 2 {
		t.Errorf("the result is %s, and the step ran %d times", got, ran)
	}
}

// TestFinalErrorOfACall passes a final error on through two calls. Neither caller is attempted
// again.
func TestFinalErrorOfACall(t *testing.T) {
	ran := ""
	var functions []durable.Function
	for _, f := range []struct{ name, calls string }{{"a", "b"}, {"b", "c"}, {"c", ""}} {
		function := durable.Func(f.name, func(ctx durable.Context, _ int) (int, error) {
			ran += fmt.Sprint(f.name, ctx.Attempt(), " ")
			if f.calls == "" {
				return 0, durable.Final(errors.New("never"))
			}
			return durable.Invoke[int](ctx, nil, durable.Call{Func: f.calls})
		})
		function.Retry = durable.Retry{Attempts: 3, Delay: time.Minute}
		functions = append(functions, function)
	}
	w := newWorld(t, 1, functions...)
	w.start(0, false)
	w.call("f", "a", 1)
	w.run(nil)
	if got := w.result("f"); got != "error: never" || ran != "a1 b1 c1 b1 a1 " {
		t.Errorf("the result is %s, and the attempts were %s", got, ran)
	}
}
