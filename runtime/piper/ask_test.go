package piper_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// TestEachCallerGetsItsAnswer has many ask at once, of several instances, while
// some give up.
func TestEachCallerGetsItsAnswer(t *testing.T) {
	const callers, asks = 8, 300
	top := build(t, []proc{{external: true}, {instances: 3}}, []edge{{from: 0, to: 1, capacity: 4}}, piper.Workers(2))
	result := top.start(t.Context())
	var wait sync.WaitGroup
	for i := range callers {
		g := top.doors[0].guest()
		wait.Go(func() {
			for n := range asks {
				ctx, cancel := context.WithCancel(context.Background())
				if (i+n)%3 == 0 {
					go cancel() // sometimes before the answer, sometimes after
				}
				if _, err := g.ask(ctx, time.Minute, 0, (i+n)%3, message{}); err != nil && !errors.Is(err, context.Canceled) {
					top.violated("Ask returns %v", err)
				}
				cancel()
			}
		})
	}
	wait.Wait()
	top.ends(t, result)
}

// TestALateAnswerIsNobodys: a caller gave up; the next one gets its own answer.
func TestALateAnswerIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top := build(t, []proc{
			{external: true},
			{blocking: true, receive: func(*cell, *message) error { time.Sleep(time.Second); return nil }},
		}, []edge{{from: 0, to: 1}})
		result := top.start(t.Context())
		g := top.doors[0].guest()
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			if _, err := g.ask(ctx, 0, 0, 0, message{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Ask returns %v", err)
			}
			cancel()
			if _, err := g.ask(t.Context(), 0, 0, 0, message{}); err != nil { // checks the answer
				t.Error(err)
			}
		}
		top.ends(t, result)
	})
}

// TestAskEndsOnEveryWayOut: by its context, by the timeout of its edge, by the
// end of Run, by a handler that fails, by a drain that takes too long. It is
// answered while Run drains.
func TestAskEndsOnEveryWayOut(t *testing.T) {
	type way struct {
		name    string
		timeout time.Duration
		handle  func(cancel context.CancelFunc) func(*cell, *message) error
		want    error
		run     error
	}
	for _, w := range []way{
		{name: "timeout", timeout: time.Second, handle: func(context.CancelFunc) func(*cell, *message) error {
			return func(*cell, *message) error { time.Sleep(2 * time.Second); return nil }
		}, want: context.DeadlineExceeded},
		{name: "failure", handle: func(context.CancelFunc) func(*cell, *message) error {
			return func(*cell, *message) error { return errFailed }
		}, want: topo.ErrStopping, run: errFailed},
		{name: "panic", handle: func(context.CancelFunc) func(*cell, *message) error {
			return func(*cell, *message) error { panic(errFailed) }
		}, want: topo.ErrStopping, run: errFailed},
		{name: "drain", handle: func(stop context.CancelFunc) func(*cell, *message) error {
			return func(*cell, *message) error { stop(); time.Sleep(time.Second); return nil }
		}},
		{name: "drain timeout", handle: func(stop context.CancelFunc) func(*cell, *message) error {
			return func(c *cell, _ *message) error { stop(); <-c.Context().Done(); return c.Context().Err() }
		}, want: topo.ErrStopping, run: piper.ErrDrainTimeout},
	} {
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				top := build(t, []proc{{external: true}, {blocking: true, receive: w.handle(cancel)}},
					[]edge{{from: 0, to: 1}}, piper.DrainTimeout(5*time.Second))
				result := top.start(ctx)
				g := top.doors[0].guest()
				if _, err := g.ask(context.Background(), w.timeout, 0, 0, message{}); !errors.Is(err, w.want) {
					t.Errorf("Ask returns %v, not %v", err, w.want)
				}
				top.doors[0].Close()
				if err := top.result(t, result); !errors.Is(err, w.run) {
					t.Errorf("Run returns %v, not %v", err, w.run)
				}
				top.check(t, w.run == nil)
			})
		})
	}
}

// TestAskIsToldThatItsQuestionWasDropped: the newest question takes the place of
// the oldest.
func TestAskIsToldThatItsQuestionWasDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top, _, open := shut(t, 2, dropOldest)
		var dropped, answered atomic.Int32
		for range 5 {
			g := top.doors[0].guest()
			go func() {
				switch _, err := g.ask(context.Background(), 0, 0, 0, message{}); {
				case err == nil:
					answered.Add(1)
				case errors.Is(err, topo.ErrFull):
					dropped.Add(1)
				default:
					t.Errorf("Ask returns %v", err)
				}
			}()
			synctest.Wait()
		}
		if dropped.Load() != 3 {
			t.Errorf("%d of 3 callers know that their question was dropped", dropped.Load())
		}
		open()
		top.ends(t, top.start(t.Context()))
		synctest.Wait()
		if answered.Load() != 2 {
			t.Errorf("%d of 2 were answered", answered.Load())
		}
	})
}

// TestAskUnderTheStepper steps the topology until it is answered.
func TestAskUnderTheStepper(t *testing.T) {
	for seed := range uint64(20) {
		top := build(t, []proc{{external: true}, {}, feed(1, 50, 1)}, []edge{{from: 0, to: 1}, {from: 2, to: 1}})
		s := top.pool.Stepper(seed)
		g := top.doors[0].guest()
		for range 20 {
			if _, err := g.ask(t.Context(), 0, 0, 0, message{}); err != nil {
				t.Fatal(err)
			}
		}
		top.doors[0].Close()
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		top.check(t, true)
	}
}
