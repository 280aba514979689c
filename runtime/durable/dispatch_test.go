package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestDispatch runs executions on an instance that handles one at a time, as a processor of
// a topology does. The instance is occupied while a function runs, not while it sleeps.
func TestDispatch(t *testing.T) {
	var queue []*durable.Activation
	running := 0
	handler := func(ctx durable.Context, arg json.RawMessage) (any, error) {
		if running++; running > 1 {
			t.Error("two functions run on the instance")
		}
		defer func() { running-- }()
		if err := durable.Sleep(ctx, time.Hour); err != nil {
			return nil, err
		}
		if string(arg) == "3" {
			return nil, errors.New("three")
		}
		return arg, nil
	}
	w := newWorld(t, 1, durable.Function{Name: "f", Dispatch: func(a *durable.Activation) { queue = append(queue, a) }})
	w.start(0, false)
	for i := range 5 {
		w.call(fmt.Sprint("f", i), "f", i)
	}
	outcomes := make(map[string]string)
	work := func() {
		for w.step(nil) {
		}
		for _, a := range queue {
			o := a.Run(t.Context(), handler)
			outcomes[a.ID()] += fmt.Sprint(o.State, " ")
			if again := a.Run(t.Context(), handler); again.State != durable.Released {
				t.Errorf("the second Run of an activation returned %v", again)
			}
		}
		queue = nil
	}
	work()
	w.now = w.now.Add(time.Hour)
	work()
	for i := range 5 {
		id, want, result := fmt.Sprint("f", i), "suspended completed ", fmt.Sprint(i)
		if i == 3 {
			want, result = "suspended failed ", "error: three"
		}
		if outcomes[id] != want || w.result(id) != result {
			t.Errorf("%s: the outcomes are %s, and the result is %s", id, outcomes[id], w.result(id))
		}
	}
}

// TestActivationsThatDoNotRun releases activations, and closes a worker whose activations
// wait for their instance. Another worker runs them at once.
func TestActivationsThatDoNotRun(t *testing.T) {
	var queue []*durable.Activation
	w := newWorld(t, 1, durable.Function{Name: "f", Dispatch: func(a *durable.Activation) { queue = append(queue, a) }})
	first := w.start(0, false)
	for i := range 4 {
		w.call(fmt.Sprint("f", i), "f", i)
	}
	for w.step(nil) {
	}
	w.functions = []durable.Function{durable.Func("f", func(_ durable.Context, n int) (int, error) { return n, nil })}
	w.start(0, false)
	queue[0].Release()
	queue[0].Release()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if o := queue[1].Run(ended, func(ctx durable.Context, _ json.RawMessage) (any, error) {
		return nil, ctx.Err()
	}); o.State != durable.Released {
		t.Errorf("an activation whose parent context has ended returned %v", o)
	}
	if err := first.worker.Close(t.Context()); err != nil {
		t.Error(err)
	}
	began := w.now
	for w.step(nil) {
	}
	for i := range 4 {
		if got := w.result(fmt.Sprint("f", i)); got != fmt.Sprint(i) {
			t.Errorf("f%d is %s", i, got)
		}
	}
	if w.now != began {
		t.Errorf("the other worker took over after %v", w.now.Sub(began))
	}
	if s := first.worker.Stats(); s.Running != 0 || s.Released != 4 {
		t.Errorf("the figures of the first worker are %+v", s)
	}
	w.check()
}

// TestParentEndsInAStep ends the context of the topology while a step runs. The error of the
// step is the end of the context, so it is not recorded, and another worker runs the step.
func TestParentEndsInAStep(t *testing.T) {
	var queue []*durable.Activation
	w := newWorld(t, 1, durable.Function{Name: "f", Dispatch: func(a *durable.Activation) { queue = append(queue, a) }})
	w.start(0, false)
	w.call("f", "f", 1)
	for w.step(nil) {
	}
	parent, cancel := context.WithCancel(t.Context())
	ran := 0
	step := func(ctx durable.Context, _ json.RawMessage) (any, error) {
		return durable.Step(ctx, "a", func(c context.Context) (string, error) {
			if ran++; ran == 1 {
				cancel()
				return "", c.Err()
			}
			return "done", nil
		})
	}
	if o := queue[0].Run(parent, step); o.State != durable.Released || w.promise("f:#1") != nil {
		t.Errorf("the outcome is %v, and the record is %v", o, w.promise("f:#1"))
	}
	for w.step(nil) {
	}
	if o := queue[1].Run(t.Context(), step); o.State != durable.Completed || w.result("f") != `"done"` {
		t.Errorf("the outcome is %v, and the result is %s", o, w.result("f"))
	}
}

// TestPauseBeyondTheLease pauses a worker. When it returns, it begins no step, because another
// worker may have the task: neither before its heartbeat nor after it. The server ignores the
// heartbeat, and does not say so.
func TestPauseBeyondTheLease(t *testing.T) {
	for _, heartbeat := range []bool{false, true} {
		var queue []*durable.Activation
		w := newWorld(t, 1, durable.Function{Name: "f", Dispatch: func(a *durable.Activation) { queue = append(queue, a) }})
		p := w.start(0, false)
		w.call("f", "f", 1)
		for w.step(nil) {
		}
		w.now = w.now.Add(w.lease + time.Second)
		for w.server.Step() { // the lease ends
		}
		if heartbeat && !p.worker.Step() {
			t.Error("the worker sends no heartbeat")
		}
		ran := false
		o := queue[0].Run(t.Context(), func(ctx durable.Context, _ json.RawMessage) (any, error) {
			return durable.Step(ctx, "a", func(context.Context) (int, error) { ran = true; return 1, nil })
		})
		if ran || o.State != durable.Lost || !errors.Is(o.Err, durable.ErrLeaseLost) {
			t.Errorf("heartbeat %t: the step ran (%t), and the outcome is %v", heartbeat, ran, o)
		}
	}
}

// TestAbandonedActivationsHoldNoSlot abandons an activation of each second call. The other calls run,
// and another worker continues the abandoned ones when the first one is closed.
func TestAbandonedActivationsHoldNoSlot(t *testing.T) {
	t.Run("limit", func(t *testing.T) { checkAbandoned(t, durable.Limit{Concurrency: 1}, 300) })
	// A worker runs 256 activations at once, and 10,000 that are abandoned are not among them.
	t.Run("many", func(t *testing.T) { checkAbandoned(t, durable.Limit{}, 600) })
}

// TestAbandonedActivationsAreBounded is a test with more abandoned activations than may hold no slot.
func TestAbandonedActivationsAreBounded(t *testing.T) {
	speed.Long(t)
	checkAbandoned(t, durable.Limit{Concurrency: 1}, 10_002)
}

func checkAbandoned(t *testing.T, limit durable.Limit, abandoned int) {
	gaveUp := true
	w := newWorld(t, 1, durable.Function{Name: "f", Limit: limit, Dispatch: func(a *durable.Activation) {
		if gaveUp && string(a.Arg()) == "0" {
			a.Abandon(errors.New("given up"))
			return
		}
		a.Run(t.Context(), echo)
	}})
	first := w.start(0, false)
	for i := range 2 * abandoned {
		w.call(fmt.Sprint("f", i), "f", i%2)
	}
	w.runFor(3*w.lease, nil)
	for i := range 2 * abandoned {
		if got, want := w.result(fmt.Sprint("f", i)), [...]string{"pending", "1"}[i%2]; got != want {
			t.Fatalf("f%d is %s, want %s", i, got, want)
		}
	}
	if s := first.worker.Stats(); s.Running != 0 {
		t.Errorf("all are abandoned or have ended, and the worker holds %d", s.Running)
	}
	gaveUp = false
	w.start(0, false)
	if err := first.worker.Close(t.Context()); err != nil {
		t.Error(err)
	}
	w.run(nil)
	for i := range 2 * abandoned {
		if got := w.result(fmt.Sprint("f", i)); got != fmt.Sprint(i%2) {
			t.Fatalf("f%d is %s after the next worker", i, got)
		}
	}
	w.check()
}

func echo(_ durable.Context, arg json.RawMessage) (any, error) { return arg, nil }

// TestAnotherWorkerRunsAbandonedActivations lets one of two workers abandon all that it gets. The other
// one runs them when their leases end.
func TestAnotherWorkerRunsAbandonedActivations(t *testing.T) {
	limit := durable.Limit{Concurrency: 1}
	w := newWorld(t, 1, durable.Function{Name: "f", Limit: limit, Dispatch: func(a *durable.Activation) { a.Abandon(errors.New("given up")) }})
	w.start(0, false)
	w.functions = []durable.Function{{Name: "f", Limit: limit, Dispatch: func(a *durable.Activation) { a.Run(t.Context(), echo) }}}
	w.start(0, false)
	for i := range 100 {
		w.call(fmt.Sprint("f", i), "f", i)
		w.runFor(100*time.Millisecond, nil)
	}
	w.runFor(20*w.lease, nil)
	for i := range 100 {
		if got := w.result(fmt.Sprint("f", i)); got != fmt.Sprint(i) {
			t.Errorf("f%d is %s", i, got)
		}
	}
	w.check()
}

// TestAbandonWhileAWorkerIsClosed abandons an activation while its worker is closed. The next worker
// runs it at once.
func TestAbandonWhileAWorkerIsClosed(t *testing.T) {
	for range 100 {
		var taken *durable.Activation
		w := newWorld(t, 1, durable.Function{Name: "f", Dispatch: func(a *durable.Activation) { taken = a }})
		first := w.start(0, false)
		w.call("f", "f", 1)
		for w.step(nil) {
		}
		var both sync.WaitGroup
		both.Go(func() { taken.Abandon(errors.New("given up")) })
		both.Go(func() { _ = first.worker.Close(t.Context()) })
		both.Wait()
		w.functions[0].Dispatch = func(a *durable.Activation) { a.Run(t.Context(), echo) }
		w.start(0, false)
		w.runFor(2*w.lease, nil)
		if got := w.result("f"); got != "1" {
			t.Fatalf("f is %s", got)
		}
	}
}

// TestAbandonedActivationsEnd lets the deadline of an abandoned activation pass.
func TestAbandonedActivationsEnd(t *testing.T) {
	times := 0
	w := newWorld(t, 1, durable.Function{Name: "f", Dispatch: func(a *durable.Activation) {
		times++
		a.Abandon(errors.New("given up"))
	}})
	p := w.start(0, false)
	if _, err := durable.Start[int](t.Context(), w.caller, durable.Call{ID: "f", Func: "f", Timeout: time.Hour}); err != nil {
		t.Fatal(err)
	}
	w.run(nil)
	if s := p.worker.Stats(); s.Running != 0 || w.promise("f").State != protocol.RejectedTimeout || times > int(time.Hour/w.lease)+1 {
		t.Errorf("after the deadline the worker holds %d, the promise is %s, and it was abandoned %d times", s.Running, w.promise("f").State, times)
	}
	w.check()
}
