package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// held opens an engine whose first update, of a create of "first", is held. The caller
// lets it pass.
func held(t *testing.T, c engine.Config) (*engine.Engine, *hooked, *gate) {
	t.Helper()
	h := &hooked{Store: store.NewMemory()}
	c.Store = h
	e := start(t, c)
	synctest.Wait() // the first tick
	g := newGate(h)
	go func() { _, _ = e.Do(context.Background(), create("first")) }()
	<-g.arrived
	synctest.Wait()
	return e, h, g
}

// outcome is what a call of Do returned.
type outcome struct {
	result protocol.Result
	err    error
}

func later(ctx context.Context, e *engine.Engine, op protocol.Operation) chan outcome {
	c := make(chan outcome, 1)
	go func() {
		r, err := e.Do(ctx, op)
		c <- outcome{r, err}
	}()
	synctest.Wait()
	return c
}

// TestGroupCommit: the callers that arrive during a commit share the next one.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, h, g := held(t, engine.Config{})
		var waiting []chan outcome
		for i := range 100 {
			waiting = append(waiting, later(t.Context(), e, create(fmt.Sprint("p", i))))
		}
		if s := e.Stats(); s.Calls != 100 {
			t.Errorf("%d calls wait", s.Calls)
		}
		g.open()
		for _, c := range waiting {
			if o := <-c; o.err != nil || o.result.Status != 200 {
				t.Error(o)
			}
		}
		if n := h.commits.Load(); n != 2 {
			t.Errorf("%d commits", n)
		}
		if s := e.Stats(); s.Operations != 101 || s.Commits.Count != 2 || s.Calls != 0 || s.CallBytes != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestBatchLimit: a transaction has at most BatchMax operations.
func TestBatchLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, h, g := held(t, engine.Config{BatchMax: 10})
		var group sync.WaitGroup
		for i := range 95 {
			group.Go(func() { do(t, e, create(fmt.Sprint("p", i)), 200) })
		}
		synctest.Wait()
		g.open()
		group.Wait()
		if n := h.commits.Load(); n != 1+10 {
			t.Errorf("%d commits", n)
		}
		results, err := e.DoAll(t.Context(), make([]protocol.Operation, 11))
		if err == nil && results[0].Status != 400 {
			t.Error(results, err)
		}
	})
}

// TestBatchOfLargeResults: the results of a transaction are in memory until their callers
// have them, so a transaction has few large ones.
func TestBatchOfLargeResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, h, g := held(t, engine.Config{})
		large := create("large")
		large.Param.Data = new(strings.Repeat("x", 4_000_000))
		first := later(t.Context(), e, large)
		var waiting []chan outcome
		for i := range 20 {
			waiting = append(waiting, later(t.Context(), e, create("large")))
			waiting = append(waiting, later(t.Context(), e, create(fmt.Sprint("small", i)))) // makes a commit of its transaction
		}
		g.open()
		for _, c := range append(waiting, first) {
			if o := <-c; o.err != nil || o.result.Status != 200 {
				t.Error(o)
			}
		}
		if n := h.commits.Load(); n < 5 {
			t.Errorf("80 MB of results in %d commits", n)
		}
	})
}

// admission admits an operation if the bytes of fewer than two results are counted.
type admission struct{ made *int }

func (a admission) Admit() bool { return *a.made < 2 }

func (a admission) Made(bytes int) {
	if bytes > 0 {
		*a.made++
	}
}

// TestAdmission: an operation that waits is refused if there is no memory for its result when
// its turn comes, which is after the results of those before it, in the same transaction, were counted.
func TestAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, g := held(t, engine.Config{})
		ctx := engine.WithAdmission(t.Context(), admission{new(int)})
		var waiting []chan outcome
		for i := range 4 {
			waiting = append(waiting, later(ctx, e, create(fmt.Sprint("p", i))))
		}
		g.open()
		for i, c := range waiting {
			want, exists := 200, 200
			if i >= 2 {
				want, exists = 429, 404
			}
			if o := <-c; o.err != nil || o.result.Status != want {
				t.Errorf("operation %d: %+v, want status %d", i, o, want)
			}
			do(t, e, protocol.PromiseGet{ID: fmt.Sprint("p", i)}, exists)
		}
	})
}

// TestBusy: operations beyond the limits of the queue are refused and not carried out.
func TestBusy(t *testing.T) {
	for name, c := range map[string]engine.Config{"number": {CallsMax: 3}, "bytes": {CallBytesMax: 3 * 600}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _, g := held(t, c)
				var waiting []chan outcome
				for i := range 3 {
					waiting = append(waiting, later(t.Context(), e, create(fmt.Sprint("p", i))))
				}
				for range 5 {
					if r := do(t, e, create("refused"), 429); r.Error == "" {
						t.Error("a refusal must have a text")
					}
				}
				do(t, e, protocol.PromiseGet{ID: "p0"}, 404) // reads do not wait
				g.open()
				for _, c := range waiting {
					if o := <-c; o.err != nil || o.result.Status != 200 {
						t.Error(o)
					}
				}
				do(t, e, protocol.PromiseGet{ID: "refused"}, 404)
				if s := e.Stats(); s.Busy != 5 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestLargeCall: an operation that is larger than the whole queue is accepted by an empty
// one.
func TestLargeCall(t *testing.T) {
	e := start(t, engine.Config{CallBytesMax: 100})
	data := strings.Repeat("x", 1000)
	p := create("large")
	p.Param.Data = &data
	do(t, e, p, 200)
}

// TestCancel: a call that is cancelled in the queue is not carried out. Later, its outcome
// is unknown.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooked{Store: store.NewMemory()}
		e := start(t, engine.Config{Store: h})
		synctest.Wait()
		g := newGate(h)
		ctx, cancel := context.WithCancel(t.Context())
		taken := later(ctx, e, create("taken"))
		<-g.arrived
		queued := later(ctx, e, create("queued"))
		cancel()
		if o := <-queued; !errors.Is(o.err, context.Canceled) || errors.Is(o.err, engine.ErrUnknown) {
			t.Error(o)
		}
		if o := <-taken; !errors.Is(o.err, context.Canceled) || !errors.Is(o.err, engine.ErrUnknown) {
			t.Error(o)
		}
		g.open()
		do(t, e, create("another"), 200)
		do(t, e, protocol.PromiseGet{ID: "taken"}, 200)
		do(t, e, protocol.PromiseGet{ID: "queued"}, 404)
		if s := e.Stats(); s.Abandoned != 1 {
			t.Errorf("%+v", s)
		}
		for _, op := range []protocol.Operation{create("p"), protocol.PromiseGet{ID: "taken"}} {
			if _, err := e.Do(ctx, op); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// TestDoAll: several operations in one commit, in order. An operation that is refused does
// not stop the others.
func TestDoAll(t *testing.T) {
	h := &hooked{Store: store.NewMemory()}
	e := start(t, engine.Config{Store: h})
	before := h.commits.Load()
	results, err := e.DoAll(t.Context(), []protocol.Operation{
		create("a"), settle("a"), settle("missing"), create("b"), protocol.PromiseGet{ID: "a"},
	})
	must(t, err)
	var got []int
	for _, r := range results {
		got = append(got, r.Status)
	}
	if fmt.Sprint(got) != "[200 200 404 200 200]" || results[4].Promise.State != protocol.Resolved {
		t.Error(got, results[4].Promise)
	}
	if n := h.commits.Load() - before; n != 1 {
		t.Errorf("%d commits", n)
	}
	if results, err := e.DoAll(t.Context(), nil); err != nil || len(results) != 0 {
		t.Error(results, err)
	}
}

// TestNothingChanged: operations that change nothing need no commit.
func TestNothingChanged(t *testing.T) {
	h := &hooked{Store: store.NewMemory()}
	e := start(t, engine.Config{Store: h})
	do(t, e, create("p"), 200)
	do(t, e, settle("p"), 200)
	before := h.commits.Load()
	do(t, e, create("p"), 200)
	do(t, e, settle("p"), 200)
	do(t, e, settle("missing"), 404)
	if n := h.commits.Load() - before; n != 0 {
		t.Errorf("%d commits", n)
	}
}

// TestCloseAnswers: Close answers the operations that were accepted, and refuses others.
func TestCloseAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, g := held(t, engine.Config{})
		var waiting []chan outcome
		for i := range 10 {
			waiting = append(waiting, later(t.Context(), e, create(fmt.Sprint("p", i))))
		}
		c := connect(t, e, "g", "p")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.Close(ended); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		do(t, e, create("late"), 503)
		g.open()
		for _, c := range waiting {
			if o := <-c; o.err != nil || o.result.Status != 200 {
				t.Error(o)
			}
		}
		must(t, e.Close(t.Context()))
		<-e.Stopped()
		if _, ok := <-c.Messages(); ok {
			t.Error("the connection must be closed")
		}
	})
}

// TestPanic: a step that panics is rolled back and answered with 500. The other operations
// of the same transaction are carried out.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, h, g := held(t, engine.Config{Logger: quiet})
		h.set(func() { h.wrap = func(tx store.Tx) store.Tx { return poisoned{tx, "poison"} } })
		before := later(t.Context(), e, create("before"))
		bad := make(chan []protocol.Result, 1)
		go func() {
			results, _ := e.DoAll(t.Context(), []protocol.Operation{create("rolled back"), create("poison")})
			bad <- results
		}()
		synctest.Wait()
		after := later(t.Context(), e, create("after"))
		g.open()
		for _, c := range []chan outcome{before, after} {
			if o := <-c; o.err != nil || o.result.Status != 200 {
				t.Error(o)
			}
		}
		for _, r := range <-bad {
			if r.Status != 500 {
				t.Error(r)
			}
		}
		do(t, e, protocol.PromiseGet{ID: "before"}, 200)
		do(t, e, protocol.PromiseGet{ID: "after"}, 200)
		do(t, e, protocol.PromiseGet{ID: "rolled back"}, 404)
		if s := e.Stats(); s.Panics != 1 {
			t.Errorf("%+v", s)
		}
		if err := e.Err(); err != nil {
			t.Error(err)
		}
	})
}
