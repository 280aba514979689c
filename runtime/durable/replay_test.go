package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// readOnly fails the test at each operation that could write.
type readOnly struct {
	protocol.Backend
	t *testing.T
}

func (r readOnly) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	switch op.(type) {
	case protocol.PromiseGet, protocol.PromiseSearch:
		return r.Backend.Do(ctx, op)
	}
	r.t.Errorf("a replay carries out %s", op.Kind())
	return protocol.Result{}, errors.New("read-only")
}

// replayAll replays what a world has recorded, and returns the errors by id.
func replayAll(t *testing.T, w *world, pending bool, functions ...durable.Function) map[string]error {
	errs := make(map[string]error)
	config := durable.ReplayConfig{Backend: readOnly{w.server, t}, Functions: functions, Pending: pending, Logger: w.log}
	for r, err := range durable.Replay(t.Context(), config) {
		if err != nil {
			t.Fatal(err)
		}
		errs[r.ID] = r.Err
	}
	return errs
}

// TestReplay replays executions that have ended, sleep, failed and are retried through the
// function that recorded them and through changed ones.
func TestReplay(t *testing.T) {
	ran := 0
	function := func(result string, names ...string) durable.Function {
		f := durable.Func("place", func(ctx durable.Context, kind string) (string, error) {
			for i, name := range names {
				_, err := durable.Step(ctx, name, func(context.Context) (string, error) {
					ran++
					if kind == "fails" && i == 1 {
						return "", errors.New("no")
					}
					return name, nil
				})
				if err != nil {
					return "", err
				}
				if kind == "sleeps" && i == 1 {
					_ = durable.Sleep(ctx, 1000*time.Hour)
				}
			}
			return result, nil
		})
		f.Retry = durable.Retry{Attempts: 2, Delay: time.Minute}
		return f
	}
	old := function("done", "reserve", "charge", "ship")
	w := newWorld(t, 1, old)
	w.start(0, false)
	for _, kind := range []string{"ends", "sleeps", "fails"} {
		w.call(kind, "place", kind)
	}
	w.runFor(time.Hour, nil)
	if w.result("ends") != `"done"` || w.result("sleeps") != "pending" || w.result("fails") != "error: no" {
		t.Fatal(w.result("ends"), w.result("sleeps"), w.result("fails"))
	}
	ran = 0
	tests := []struct {
		name      string
		function  durable.Function
		pending   bool
		diverged  []string
		text      string
		unchanged []string
	}{
		{"the same function", old, false, nil, "", []string{"ends", "sleeps", "fails"}},
		{"only pending executions", old, true, nil, "", []string{"sleeps"}},
		{"another first step", function("done", "book", "charge", "ship"), false, []string{"ends", "sleeps", "fails"}, `calls "book"`, nil},
		{"another last step", function("done", "reserve", "charge", "fly"), false, []string{"ends"}, `calls "fly"`, []string{"sleeps", "fails"}},
		{"a new last step", function("done", "reserve", "charge", "ship", "bill"), false, []string{"ends"}, "after position 3 it calls another step, and the recorded function had ended", []string{"sleeps", "fails"}},
		{"without the last step", function("done", "reserve", "charge"), false, []string{"ends"}, "returns after position 2", []string{"sleeps", "fails"}},
		{"another result", function("ok", "reserve", "charge", "ship"), false, []string{"ends"}, "its result differs", []string{"sleeps", "fails"}},
		{"another function", durable.Func("other", func(durable.Context, int) (int, error) { return 1, nil }), false, nil, "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			errs := replayAll(t, w, test.pending, test.function)
			if len(errs) != len(test.diverged)+len(test.unchanged) {
				t.Errorf("the replays are %v", errs)
			}
			for _, id := range test.diverged {
				if !errors.Is(errs[id], durable.ErrDiverged) || !strings.Contains(errs[id].Error(), test.text) {
					t.Errorf("%s returned %v, without %q", id, errs[id], test.text)
				}
			}
			for _, id := range test.unchanged {
				if err, ok := errs[id]; !ok || err != nil {
					t.Errorf("%s returned %v", id, err)
				}
			}
		})
	}
	if ran > 0 {
		t.Errorf("the replays ran %d steps", ran)
	}
}

// TestReplayOfAnotherType reports executions whose argument the new program cannot decode: its worker
// would reject the pending promises.
func TestReplayOfAnotherType(t *testing.T) {
	w := newWorld(t, 1, durable.Func("place", func(ctx durable.Context, kind string) (string, error) {
		if kind == "sleeps" {
			return "", durable.Sleep(ctx, 1000*time.Hour)
		}
		return "done", nil
	}))
	w.start(0, false)
	for _, kind := range []string{"ends", "sleeps"} {
		w.call(kind, "place", kind)
	}
	w.runFor(time.Minute, nil)
	changed := durable.Func("place", func(durable.Context, int) (string, error) { return "done", nil })
	errs := replayAll(t, w, false, changed)
	if len(errs) != 2 || !errors.Is(errs["ends"], durable.ErrDiverged) || !errors.Is(errs["sleeps"], durable.ErrArgument) {
		t.Errorf("the replays returned %v", errs)
	}
}

// TestReplayOfRandomWorkflows replays what random workflows with kills have recorded, when
// they have ended and in the middle.
func TestReplayOfRandomWorkflows(t *testing.T) {
	first, end := speed.Seeds(t, 8, 200, 2000)
	end = first + speed.Tenth(t, end-first)
	for seed := first; seed < end; seed++ {
		random := rand.New(rand.NewPCG(seed, 1))
		s := randomScript(random, "test:root", 2)
		for _, d := range []time.Duration{time.Minute, time.Hour, 10_000 * time.Hour} {
			r := &runner{t: t}
			w := newWorld(t, seed, r.functions()...)
			r.w = w
			replace := func() { w.start(1+random.IntN(40), false) }
			replace()
			w.call("test:root", "script", s)
			w.runFor(d, replace)
			ran := r.ran
			for id, err := range replayAll(t, w, false, r.functions()...) {
				if err != nil {
					t.Errorf("seed %d after %v: %s: %v", seed, d, id, err)
				}
			}
			if r.ran != ran {
				t.Errorf("seed %d: the replay ran %d steps", seed, r.ran-ran)
			}
		}
		if t.Failed() {
			t.Fatal(speed.Repeat(t, seed))
		}
	}
}

// TestReplayWithoutFunction: a program that does not have the function of an execution would
// never continue it, if it has not ended. Executions of other groups do not matter.
func TestReplayWithoutFunction(t *testing.T) {
	sleeping := func(ctx durable.Context, n int) (int, error) {
		return n, durable.Sleep(ctx, time.Duration(n)*time.Hour)
	}
	w := newWorld(t, 1, durable.Func("old", sleeping), durable.Func("kept", sleeping))
	w.start(0, false)
	w.call("ended", "old", 0)
	w.call("pending", "old", 1)
	w.call("kept", "kept", 1)
	for w.step(nil) {
	}
	for group, want := range map[string]string{"": "", "other": "", "test": `the program does not have its function "old"`} {
		got := map[string]error{}
		for r, err := range durable.Replay(t.Context(), durable.ReplayConfig{Backend: w.server, Group: group, Functions: []durable.Function{durable.Func("kept", sleeping)}}) {
			if err != nil {
				t.Fatal(err)
			}
			got[r.ID] = r.Err
		}
		err := got["pending"]
		if _, ended := got["ended"]; ended || got["kept"] != nil || errors.Is(err, durable.ErrNoFunction) != (want != "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("group %q: %v", group, got)
		}
	}
}

// TestReplayOfVersions replays executions that ended before Version was called at all.
func TestReplayOfVersions(t *testing.T) {
	function := func(versions bool) durable.Function {
		return durable.Func("place", func(ctx durable.Context, _ int) (int, error) {
			n, err := durable.Step(ctx, "reserve", func(context.Context) (int, error) { return 1, nil })
			if err == nil && versions && ctx.Version("bill", 1, 2) == 2 {
				_, err = durable.Step(ctx, "bill", func(context.Context) (int, error) { return 1, nil })
			}
			return n, err
		})
	}
	for _, versions := range []bool{false, true} {
		w := newWorld(t, 1, function(versions))
		w.start(0, false)
		w.call("order", "place", 1)
		w.run(nil)
		if errs := replayAll(t, w, false, function(true)); len(errs) != 1 || errs["order"] != nil {
			t.Errorf("an execution with versions = %v: %v", versions, errs)
		}
	}
}

// TestReplayDispatches replays executions through an instance, as a topology does.
func TestReplayDispatches(t *testing.T) {
	run := func(ctx durable.Context, arg json.RawMessage) (any, error) {
		return durable.Step(ctx, "a", func(context.Context) (int, error) { return 7, nil })
	}
	w := newWorld(t, 1, durable.Function{Name: "f", Run: run})
	w.start(0, false)
	for i := range 10 {
		w.call(fmt.Sprint("f", i), "f", i)
	}
	w.run(nil)
	instance := make(chan *durable.Activation)
	go func() {
		for a := range instance {
			a.Run(t.Context(), run)
		}
	}()
	errs := replayAll(t, w, false, durable.Function{Name: "f", Dispatch: func(a *durable.Activation) { go func() { instance <- a }() }})
	close(instance)
	if len(errs) != 10 {
		t.Errorf("%d executions were replayed", len(errs))
	}
	for id, err := range errs {
		if err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}
