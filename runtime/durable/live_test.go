package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// live runs a test in virtual time with an engine and workers that have goroutines.
func live(t *testing.T, f func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{T: t, ctx: t.Context(), log: slog.New(failing{t: t})}
		var err error
		l.disk = &disk{Store: store.NewMemory()}
		if l.engine, err = engine.Open(engine.Config{Store: l.disk, Logger: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(err)
		}
		f(l)
		for _, w := range l.workers {
			_ = w.Close(t.Context()) // some tests have closed it
		}
		if err := l.engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
		l.served.Wait()
	})
}

type lab struct {
	*testing.T
	ctx     context.Context
	engine  *engine.Engine
	disk    *disk
	log     *slog.Logger // of the workers
	workers []*durable.Worker
	served  sync.WaitGroup
}

// worker starts a worker on a backend, or on the engine.
func (l *lab) worker(b durable.Backend, functions ...durable.Function) *durable.Worker {
	l.Helper()
	if b == nil {
		b = l.engine
	}
	w, err := durable.NewWorker(durable.Config{Backend: b, Group: "test", Functions: functions, Logger: l.log})
	if err != nil {
		l.Fatal(err)
	}
	l.workers = append(l.workers, w)
	l.served.Go(func() {
		if err := w.Serve(context.Background()); err != nil {
			l.Error(err)
		}
	})
	synctest.Wait()
	return w
}

// disk is a store in memory that can be full.
type disk struct {
	store.Store
	full atomic.Bool
}

func (d *disk) Update(f func(store.Tx) error) error {
	return d.Store.Update(func(tx store.Tx) error {
		if err := f(tx); err != nil || !tx.Changed() || !d.full.Load() {
			return err
		}
		return store.ErrFull
	})
}

// faulty is a backend whose operations can be made to fail or wait.
type faulty struct {
	protocol.Backend
	mu   sync.Mutex
	fail func(op protocol.Operation) error // nil: none
}

func (f *faulty) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	f.mu.Lock()
	fail := f.fail
	f.mu.Unlock()
	if fail != nil {
		if err := fail(op); err != nil {
			return protocol.Result{}, err
		}
	}
	return f.Backend.Do(ctx, op)
}

func (f *faulty) set(fail func(op protocol.Operation) error) {
	f.mu.Lock()
	f.fail = fail
	f.mu.Unlock()
}

func TestLiveWorkflow(t *testing.T) {
	live(t, func(l *lab) {
		ran := make(map[string]int)
		w := l.worker(nil, placeOrder(ran, nil), ship)
		began := time.Now()
		got, err := durable.Invoke[string](l.ctx, w, durable.Call{ID: "shop:a:1", Func: "place", Arg: order{"1", 10}})
		if err != nil || fmt.Sprintf("%q", got) != placed {
			t.Errorf("the result is %q, %v", got, err)
		}
		if d := time.Since(began); d < time.Hour || d > time.Hour+4*time.Minute {
			t.Errorf("the workflow took %v", d)
		}
		for step, n := range ran {
			if n != 1 {
				t.Errorf("step %s ran %d times", step, n)
			}
		}
	})
}

// TestHeartbeat runs a step for ten leases, with another worker that could take the task.
func TestHeartbeat(t *testing.T) {
	live(t, func(l *lab) {
		var ran atomic.Int32
		f := durable.Func("f", func(ctx durable.Context, _ int) (string, error) {
			return durable.Step(ctx, "long", func(context.Context) (string, error) {
				ran.Add(1)
				time.Sleep(5 * time.Minute)
				return "done", nil
			})
		})
		w := l.worker(nil, f)
		l.worker(nil, f)
		got, err := durable.Invoke[string](l.ctx, w, durable.Call{Func: "f"})
		if got != "done" || err != nil || ran.Load() != 1 {
			t.Errorf("the result is %q, %v, and the step ran %d times", got, err, ran.Load())
		}
	})
}

// TestLeaseLost cuts a worker off for longer than its lease while it runs a step. Its
// context ends, another worker continues, and the result of the first is not recorded.
func TestLeaseLost(t *testing.T) {
	for _, returns := range []string{"at the end of its context", "after the other worker has finished"} {
		t.Run(returns, func(t *testing.T) {
			live(t, func(l *lab) {
				var runs atomic.Int32
				var cause atomic.Value
				f := durable.Func("f", func(ctx durable.Context, _ int) (string, error) {
					return durable.Step(ctx, "long", func(c context.Context) (string, error) {
						if runs.Add(1) > 1 {
							return "second", nil
						}
						began := time.Now()
						<-c.Done()
						if d := time.Since(began); d < 25*time.Second || d > 30*time.Second {
							t.Errorf("the context ended after %v", d)
						}
						cause.Store(context.Cause(c))
						if returns != "at the end of its context" {
							time.Sleep(time.Minute)
						}
						return "first", nil
					})
				})
				cut := &faulty{Backend: l.engine}
				first := l.worker(cut, f)
				h, err := durable.Start[string](l.ctx, first, durable.Call{ID: "a", Func: "f"})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				time.Sleep(5 * time.Second)
				cut.set(func(protocol.Operation) error { return errors.New("the network is down") })
				second := l.worker(nil, f)
				got, err := durable.Get[string](second, h.ID()).Wait(l.ctx)
				if got != "second" || err != nil {
					t.Errorf("the result is %q, %v", got, err)
				}
				time.Sleep(2 * time.Minute)
				cut.set(nil)
				time.Sleep(2 * time.Minute)
				if ended, _ := cause.Load().(error); !errors.Is(ended, durable.ErrLeaseLost) || runs.Load() != 2 {
					t.Errorf("the context ended because of %v, and the step ran %d times", ended, runs.Load())
				}
				if s := first.Stats(); s.Lost != 1 || s.Completed != 0 || s.Running != 0 {
					t.Errorf("the figures of the first worker are %+v", s)
				}
			})
		})
	}
}

// TestCancel cancels executions while they run a step, while they sleep and before they
// start.
func TestCancel(t *testing.T) {
	live(t, func(l *lab) {
		var cause atomic.Value
		f := durable.Func("f", func(ctx durable.Context, sleeps bool) (string, error) {
			if sleeps {
				return "", durable.Sleep(ctx, time.Hour)
			}
			_, err := durable.Step(ctx, "long", func(c context.Context) (string, error) {
				<-c.Done()
				cause.Store(context.Cause(c))
				return "", c.Err()
			})
			t.Errorf("Step of a canceled execution returned %v", err)
			return "", err
		})
		w := l.worker(nil, f)
		var handles []durable.Handle[string]
		for _, call := range []durable.Call{{Func: "f", Arg: false}, {Func: "f", Arg: true}, {Func: "f", Delay: time.Hour}} {
			h, err := durable.Start[string](l.ctx, w, call)
			if err != nil {
				t.Fatal(err)
			}
			handles = append(handles, h)
		}
		time.Sleep(10 * time.Second)
		for _, h := range handles {
			began := time.Now()
			if err := h.Cancel(l.ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Wait(l.ctx); !errors.Is(err, durable.ErrCanceled) || !errors.Is(err, context.Canceled) {
				t.Errorf("Wait returned %v", err)
			}
			if d := time.Since(began); d > 0 {
				t.Errorf("Wait returned after %v", d)
			}
		}
		time.Sleep(3 * time.Second)
		if got, _ := cause.Load().(error); !errors.Is(got, durable.ErrCanceled) {
			t.Errorf("the context ended because of %v", got)
		}
		if s := w.Stats(); s.Running != 0 || s.Lost != 1 {
			t.Errorf("the figures are %+v", s)
		}
	})
}

func TestTimeout(t *testing.T) {
	live(t, func(l *lab) {
		f := durable.Func("f", func(ctx durable.Context, _ int) (string, error) {
			return durable.Step(ctx, "long", func(c context.Context) (string, error) {
				deadline, ok := c.Deadline()
				<-c.Done()
				if !ok || !time.Now().Equal(deadline) || !errors.Is(c.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(c), durable.ErrTimedOut) {
					t.Errorf("at %v the context with the deadline %v ended with %v, %v", time.Now(), deadline, c.Err(), context.Cause(c))
				}
				return "late", nil
			})
		})
		w := l.worker(nil, f)
		began := time.Now()
		_, err := durable.Invoke[string](l.ctx, w, durable.Call{Func: "f", Timeout: 10 * time.Second})
		if !errors.Is(err, durable.ErrTimedOut) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Invoke returned %v", err)
		}
		if d := time.Since(began); d < 10*time.Second || d > 11*time.Second {
			t.Errorf("Invoke returned after %v", d)
		}
	})
}

// TestCloseHandsOver closes a worker while it runs a step. The step is finished and
// recorded, and the second worker continues at once.
func TestCloseHandsOver(t *testing.T) {
	live(t, func(l *lab) {
		var ran [2]atomic.Int32
		f := durable.Func("f", func(ctx durable.Context, _ int) (string, error) {
			for i := range ran {
				_, err := durable.Step(ctx, fmt.Sprint("step", i), func(c context.Context) (int, error) {
					ran[i].Add(1)
					time.Sleep(10 * time.Second)
					return i, c.Err()
				})
				if err != nil {
					return "", err
				}
			}
			return "done", nil
		})
		first := l.worker(nil, f)
		h, err := durable.Start[string](l.ctx, first, durable.Call{Func: "f"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		second := l.worker(nil, f)
		began := time.Now()
		if err := first.Close(l.ctx); err != nil {
			t.Errorf("Close returned %v", err)
		}
		got, err := durable.Get[string](second, h.ID()).Wait(l.ctx)
		if got != "done" || err != nil || ran[0].Load() != 1 || ran[1].Load() != 1 {
			t.Errorf("the result is %q, %v, and the steps ran %d and %d times", got, err, ran[0].Load(), ran[1].Load())
		}
		if d := time.Since(began); d > 16*time.Second {
			t.Errorf("the second worker had the result after %v", d)
		}
		if s := first.Stats(); s.Released != 1 {
			t.Errorf("the figures of the first worker are %+v", s)
		}
	})
}

// TestCloseWithWaitingTasks closes a worker that runs one task and has announced ones that
// wait. The second worker has all of them at once.
func TestCloseWithWaitingTasks(t *testing.T) {
	live(t, func(l *lab) {
		f := durable.Func("f", func(ctx durable.Context, n int) (int, error) {
			return durable.Step(ctx, "a", func(context.Context) (int, error) { time.Sleep(time.Second); return n, nil })
		})
		f.Limit.Concurrency = 1
		first := l.worker(nil, f)
		var handles []durable.Handle[int]
		for n := range 300 {
			h, err := durable.Start[int](l.ctx, first, durable.Call{Func: "f", Arg: n})
			if err != nil {
				t.Fatal(err)
			}
			handles = append(handles, h)
		}
		synctest.Wait()
		if s := first.Stats(); s.Waiting != 299 || s.Running != 1 {
			t.Errorf("the figures are %+v", s)
		}
		f.Limit.Concurrency = 0
		second := l.worker(nil, f)
		began := time.Now()
		if err := first.Close(l.ctx); err != nil {
			t.Error(err)
		}
		for _, h := range handles {
			if _, err := durable.Get[int](second, h.ID()).Wait(l.ctx); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(began); d > 4*time.Second {
			t.Errorf("the results came after %v", d)
		}
	})
}

// TestCloseInTime closes a worker whose step does not end in time.
func TestCloseInTime(t *testing.T) {
	live(t, func(l *lab) {
		var runs atomic.Int32
		f := durable.Func("f", func(ctx durable.Context, _ int) (string, error) {
			return durable.Step(ctx, "long", func(c context.Context) (string, error) {
				if runs.Add(1) > 1 {
					return "second", nil
				}
				<-c.Done()
				if !errors.Is(context.Cause(c), durable.ErrStopping) {
					t.Errorf("the context ended because of %v", context.Cause(c))
				}
				time.Sleep(time.Minute)
				return "first", nil
			})
		})
		first := l.worker(nil, f)
		h, err := durable.Start[string](l.ctx, first, durable.Call{Func: "f"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		second := l.worker(nil, f)
		began := time.Now()
		ctx, cancel := context.WithTimeout(l.ctx, 3*time.Second)
		defer cancel()
		if err := first.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close returned %v", err)
		}
		got, err := durable.Get[string](second, h.ID()).Wait(l.ctx)
		if d := time.Since(began); got != "second" || err != nil || d > 4*time.Second {
			t.Errorf("after %v the result is %q, %v", d, got, err)
		}
		time.Sleep(2 * time.Minute)
	})
}

// TestUnavailableServer lets the backend fail for a while at each operation. A worker
// repeats the operation, and the execution completes once.
func TestUnavailableServer(t *testing.T) {
	last := speed.Pick(t, 4, 14, 14)
	for failAt := 1; failAt <= last; failAt++ {
		live(t, func(l *lab) {
			ran := make(map[string]int)
			cut := &faulty{Backend: l.engine}
			w := l.worker(cut, placeOrder(ran, nil), ship)
			var calls atomic.Int32
			var until time.Time
			var mu sync.Mutex
			cut.set(func(protocol.Operation) error {
				mu.Lock()
				defer mu.Unlock()
				if calls.Add(1) == int32(failAt) {
					until = time.Now().Add(5 * time.Second)
				}
				if time.Now().Before(until) {
					return errors.New("the network is down")
				}
				return nil
			})
			got, err := durable.Invoke[string](l.ctx, w, durable.Call{ID: "shop:a:1", Func: "place", Arg: order{"1", 10}})
			if err != nil || fmt.Sprintf("%q", got) != placed {
				t.Errorf("failing at %d: the result is %q, %v", failAt, got, err)
			}
			for step, n := range ran {
				if n != 1 {
					t.Errorf("failing at %d: step %s ran %d times", failAt, step, n)
				}
			}
		})
	}
}

// TestResultWithoutAnAnswer loses the answer to the result of an execution. The worker sends it
// again, is refused, and finds out whether the promise has its result.
func TestResultWithoutAnAnswer(t *testing.T) {
	for _, canceled := range []bool{false, true} {
		live(t, func(l *lab) {
			b := &faulty{Backend: l.engine}
			lost := false
			b.set(func(op protocol.Operation) error {
				if _, ok := op.(protocol.TaskFulfill); !ok || lost {
					return nil
				}
				if lost = true; canceled {
					op = protocol.PromiseSettle{ID: "f", State: protocol.RejectedCancel}
				}
				if r, err := l.engine.Do(l.ctx, op); err != nil || r.Status != protocol.OK {
					t.Error(r, err)
				}
				return errors.New("the connection ended")
			})
			w := l.worker(b, durable.Func("f", func(_ durable.Context, n int) (int, error) { return n, nil }))
			got, err := durable.Invoke[int](l.ctx, w, durable.Call{ID: "f", Func: "f", Arg: 5})
			time.Sleep(time.Minute)
			s := w.Stats()
			if canceled && (!errors.Is(err, durable.ErrCanceled) || s.Completed != 0 || s.Lost != 1) {
				t.Errorf("canceled: the result is %d, %v, and the figures are %+v", got, err, s)
			}
			if !canceled && (got != 5 || err != nil || s.Completed != 1 || s.Lost != 0) {
				t.Errorf("the result is %d, %v, and the figures are %+v", got, err, s)
			}
		})
	}
}

// TestServeTwice refuses to serve with a worker that serves.
func TestServeTwice(t *testing.T) {
	live(t, func(l *lab) {
		if err := l.worker(nil).Serve(l.ctx); err == nil {
			t.Error("a worker serves twice")
		}
	})
}

// TestLimits starts executions of several keys and watches how many of each run at once,
// and how often they start.
func TestLimits(t *testing.T) {
	live(t, func(l *lab) {
		type job struct{ Key, N int }
		var mu sync.Mutex
		running, most, starts := map[int]int{}, map[int]int{}, map[int][]time.Time{}
		f := durable.Func("f", func(ctx durable.Context, j job) (int, error) {
			mu.Lock()
			running[j.Key]++
			most[j.Key] = max(most[j.Key], running[j.Key])
			starts[j.Key] = append(starts[j.Key], time.Now())
			mu.Unlock()
			defer func() {
				mu.Lock()
				running[j.Key]--
				mu.Unlock()
			}()
			return durable.Step(ctx, "work", func(context.Context) (int, error) {
				time.Sleep(3 * time.Second)
				return j.N, nil
			})
		})
		f.Limit = durable.Limit{Concurrency: 2, Rate: 3, Period: time.Minute, Key: func(arg json.RawMessage) (string, error) {
			var j job
			err := durable.Decode(arg, &j)
			return fmt.Sprint(j.Key), err
		}}
		w := l.worker(nil, f)
		var handles []durable.Handle[int]
		for n := range 10 {
			for key := range 5 {
				h, err := durable.Start[int](l.ctx, w, durable.Call{Func: "f", Arg: job{key, n}})
				if err != nil {
					t.Fatal(err)
				}
				handles = append(handles, h)
			}
		}
		if _, err := durable.All(l.ctx, handles...); err != nil {
			t.Fatal(err)
		}
		for key := range 5 {
			if most[key] != 2 {
				t.Errorf("%d executions of key %d ran at once", most[key], key)
			}
			at := starts[key]
			if d := at[2].Sub(at[0]); d > 4*time.Second {
				t.Errorf("the burst of key %d took %v", key, d)
			}
			for i := 4; i < 10; i++ {
				if d := at[i].Sub(at[i-1]); d < 19*time.Second || d > 21*time.Second {
					t.Errorf("key %d: %v between the starts %d and %d", key, d, i-1, i)
				}
			}
		}
		if s := w.Stats(); s.Dropped != 0 || s.Waiting != 0 {
			t.Errorf("the figures are %+v", s)
		}
	})
}

// TestBacklog starts many more executions than the queue of the worker holds. It does not wait for
// the server to announce them again. It leaves alone the tasks of other groups, and delayed tasks.
func TestBacklog(t *testing.T) {
	executions := speed.Pick(t, 500, 2000, 2000) // each takes 10 ms, and 10 of them run
	for _, limit := range []durable.Limit{{}, {Concurrency: 10}} {
		live(t, func(l *lab) {
			held := make(chan bool)
			f := durable.Func("f", func(ctx durable.Context, n int) (int, error) {
				return durable.Step(ctx, "work", func(context.Context) (int, error) {
					<-held
					time.Sleep(10 * time.Millisecond)
					return n, nil
				})
			})
			f.Limit = limit
			config := durable.Config{Backend: l.engine, Group: "test", Functions: []durable.Function{f}, Running: 10, Waiting: 100, Logger: slog.New(failing{t: t})}
			w, err := durable.NewWorker(config)
			if err != nil {
				t.Fatal(err)
			}
			l.workers = append(l.workers, w)
			l.served.Go(func() { _ = w.Serve(context.Background()) })
			synctest.Wait()
			others := []durable.Call{{ID: "other", Target: "poll://any@other"}, {ID: "tests", Target: "poll://any@tests"}, {ID: "late", Delay: time.Hour}}
			for _, call := range others {
				call.Func = "f"
				if _, err := durable.Start[int](l.ctx, w, call); err != nil {
					t.Fatal(err)
				}
			}
			var handles []durable.Handle[int]
			for i := range executions {
				h, err := durable.Start[int](l.ctx, w, durable.Call{Func: "f", Arg: i})
				if err != nil {
					t.Fatal(err)
				}
				handles = append(handles, h)
			}
			began := time.Now()
			close(held)
			if _, err := durable.All(l.ctx, handles...); err != nil {
				t.Fatal(err)
			}
			if d, s := time.Since(began), w.Stats(); d > time.Duration(executions)*2500*time.Microsecond || s.Dropped == 0 || s.Activations != uint64(executions) {
				t.Errorf("the executions took %v, and the figures are %+v", d, s)
			}
			for _, call := range others {
				r, err := l.engine.Do(l.ctx, protocol.TaskGet{ID: call.ID})
				if err != nil || r.Task == nil || r.Task.Version != 0 {
					t.Errorf("the task %s was acquired: %v %v", call.ID, r.Task, err)
				}
			}
		})
	}
}

// TestUnknownFunction has a worker in the group that does not have the function, as while a
// new version of the program is started.
func TestUnknownFunction(t *testing.T) {
	limited := durable.Func("g", func(_ durable.Context, n int) (int, error) { return n, nil })
	limited.Limit = durable.Limit{Concurrency: 1}
	for name, functions := range map[string][]durable.Function{"a worker without functions": nil, "a worker with limits": {limited}} {
		t.Run(name, func(t *testing.T) {
			live(t, func(l *lab) {
				old := l.worker(nil, functions...)
				f := durable.Func("f", func(_ durable.Context, n int) (int, error) { return n, nil })
				w := l.worker(nil, f)
				began := time.Now()
				var handles []durable.Handle[int]
				for i := range 10 {
					h, err := durable.Start[int](l.ctx, w, durable.Call{Func: "f", Arg: i})
					if err != nil {
						t.Fatal(err)
					}
					handles = append(handles, h)
				}
				if _, err := durable.All(l.ctx, handles...); err != nil {
					t.Error(err)
				}
				if d := time.Since(began); old.Stats().Unknown == 0 || d > 10*time.Second {
					t.Errorf("the results came after %v, and the figures of the old worker are %+v", d, old.Stats())
				}
			})
		})
	}
}

// A breaking backend ends its connections.
type breaking struct {
	protocol.Backend
	mu    sync.Mutex
	ended func()
	left  int // connections that can be refused
}

func (b *breaking) Connect(group, pid string) (protocol.Connection, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left > 0 {
		b.left--
		return nil, errors.New("refused")
	}
	c, err := b.Backend.Connect(group, pid)
	if err == nil {
		b.ended = c.Close
	}
	return c, err
}

// TestReconnect ends the connection of a worker and refuses new ones for a while. Calls and
// callers that wait continue after that.
func TestReconnect(t *testing.T) {
	live(t, func(l *lab) {
		b := &breaking{Backend: l.engine}
		w := l.worker(b, durable.Func("f", func(ctx durable.Context, d time.Duration) (string, error) {
			return "done", durable.Sleep(ctx, d)
		}))
		for i := range 5 {
			h, err := durable.Start[string](l.ctx, w, durable.Call{Func: "f", Arg: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			b.mu.Lock()
			b.ended()
			b.left = i
			b.mu.Unlock()
			began := time.Now()
			if got, err := h.Wait(l.ctx); got != "done" || err != nil {
				t.Errorf("the result is %q, %v", got, err)
			}
			if d := time.Since(began); d > 15*time.Second {
				t.Errorf("after %d refused connections the result came after %v", i, d)
			}
		}
	})
}

// TestWaitWithoutConnection waits with a worker that does not serve. It asks each second.
func TestWaitWithoutConnection(t *testing.T) {
	live(t, func(l *lab) {
		l.worker(nil, durable.Func("f", func(ctx durable.Context, d time.Duration) (string, error) {
			return "done", durable.Sleep(ctx, d)
		}))
		w, err := durable.NewWorker(durable.Config{Backend: l.engine, Group: "test"})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		got, err := durable.Invoke[string](l.ctx, w, durable.Call{Func: "f", Arg: 10 * time.Second})
		if d := time.Since(began); got != "done" || err != nil || d > 12*time.Second {
			t.Errorf("after %v the result is %q, %v", d, got, err)
		}

		// A caller that waits when its worker is closed does not wait for ever.
		h, err := durable.Start[string](l.ctx, w, durable.Call{Func: "f", Arg: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { _ = w.Close(l.ctx) })
		if _, err := h.Wait(l.ctx); !errors.Is(err, durable.ErrStopping) {
			t.Errorf("Wait of a closed worker returned %v", err)
		}
	})
}

// TestWaitEnds ends the context of a caller that waits, and leaves nothing behind.
func TestWaitEnds(t *testing.T) {
	live(t, func(l *lab) {
		w := l.worker(nil)
		h, err := durable.Start[int](l.ctx, w, durable.Call{Func: "f"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(l.ctx, 10*time.Minute)
		defer cancel()
		if _, err := h.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait returned %v", err)
		}
		if _, err := durable.Get[int](w, "missing").Wait(l.ctx); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("Wait for a promise that does not exist returned %v", err)
		}
	})
}

// TestFullDisk: while the disk is full, a call waits until there is space or until its context ends. A handler
// waits at its next durable call until its lease ends, and is called again when there is space. A step whose
// result could not be recorded runs again.
func TestFullDisk(t *testing.T) {
	live(t, func(l *lab) {
		first, second, calls := 0, 0, 0
		var waited time.Duration
		w := l.worker(nil, durable.Function{Name: "work", Run: func(ctx durable.Context, _ json.RawMessage) (any, error) {
			calls++
			if _, err := durable.Step(ctx, "first", func(context.Context) (int, error) { first++; return 0, nil }); err != nil {
				return nil, err
			}
			if calls == 1 {
				l.disk.full.Store(true)
				began := time.Now()
				defer func() { waited = time.Since(began) }()
			}
			return durable.Step(ctx, "second", func(context.Context) (int, error) { second++; return 7, nil })
		}}, durable.Function{Name: "other", Run: func(durable.Context, json.RawMessage) (any, error) { return 0, nil }})
		h, err := durable.Start[int](l.ctx, w, durable.Call{ID: "a", Func: "work"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
		defer cancel()
		if _, err := durable.Start[int](ctx, w, durable.Call{ID: "b", Func: "other"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call on a full disk whose context ends: %v", err)
		}
		const space, lease = time.Hour, 30 * time.Second // the default lease
		began := time.Now()
		time.AfterFunc(space, func() { l.disk.full.Store(false) })
		if _, err := durable.Start[int](l.ctx, w, durable.Call{ID: "c", Func: "other"}); err != nil || time.Since(began) < space {
			t.Errorf("a call on a full disk returns after %v: %v", time.Since(began), err)
		}
		if n, err := h.Wait(l.ctx); n != 7 || err != nil {
			t.Errorf("the result is %v, %v", n, err)
		}
		if waited == 0 || waited > lease {
			t.Errorf("the handler has waited %v, the lease is %v", waited, lease)
		}
		if first != 1 || second != 2 || calls != 2 {
			t.Errorf("the handler was called %d times, its steps %d and %d times", calls, first, second)
		}
	})
}
