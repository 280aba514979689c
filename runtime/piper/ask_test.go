package piper_test

import (
	"cmp"
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

// TestEachCallerGetsItsAnswer makes many callers ask several instances at the same
// time, and some of them give up.
func TestEachCallerGetsItsAnswer(t *testing.T) {
	const callers, asks = 8, 300
	top := build(t, []proc{{external: true}, {instances: 3}}, []edge{{from: 0, to: 1, capacity: 4}}, piper.Workers(2))
	result := top.start(t.Context())
	var wait sync.WaitGroup
	for i := range callers {
		g := top.externals[0].caller()
		wait.Go(func() {
			for n := range asks {
				ctx, cancel := context.WithCancel(context.Background())
				if (i+n)%3 == 0 {
					go cancel() // sometimes before the reply, sometimes after it
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

// TestALateAnswerIsNobodys checks that the reply to a caller that gave up does not
// reach the next caller.
func TestALateAnswerIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top := build(t, []proc{
			{external: true},
			{blocking: true, receive: func(*cell, *message) error { time.Sleep(time.Second); return nil }},
		}, []edge{{from: 0, to: 1}})
		result := top.start(t.Context())
		g := top.externals[0].caller()
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			if _, err := g.ask(ctx, 0, 0, 0, message{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Ask returns %v", err)
			}
			cancel()
			if _, err := g.ask(t.Context(), 0, 0, 0, message{}); err != nil { // ask checks the reply
				t.Error(err)
			}
		}
		top.ends(t, result)
	})
}

// TestAskEndsOnEveryWayOut checks that Ask returns when its context ends, after the
// timeout of its edge, when Run ends, when the handler fails, and when draining takes
// too long. While Run drains, Ask gets its reply.
func TestAskEndsOnEveryWayOut(t *testing.T) {
	type way struct {
		name    string
		timeout time.Duration
		caller  time.Duration // after this time the context of the caller ends
		handle  func(cancel context.CancelFunc) func(*cell, *message) error
		want    error
		run     error
	}
	for _, w := range []way{
		{name: "timeout", timeout: time.Second, handle: func(context.CancelFunc) func(*cell, *message) error {
			return func(*cell, *message) error { time.Sleep(2 * time.Second); return nil }
		}, want: context.DeadlineExceeded},
		{name: "context", timeout: time.Hour, caller: time.Second, handle: func(context.CancelFunc) func(*cell, *message) error {
			return func(*cell, *message) error { time.Sleep(2 * time.Second); return nil }
		}, want: context.Canceled},
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
				g := top.externals[0].caller()
				asking, giveUp := context.WithCancel(context.Background())
				defer giveUp()
				if w.caller > 0 {
					time.AfterFunc(w.caller, giveUp)
				}
				began := time.Now()
				if _, err := g.ask(asking, w.timeout, 0, 0, message{}); !errors.Is(err, w.want) {
					t.Errorf("Ask returns %v, want %v", err, w.want)
				}
				if end := cmp.Or(w.caller, w.timeout); end > 0 && time.Since(began) != end {
					t.Errorf("Ask returns after %v, want %v", time.Since(began), end)
				}
				top.externals[0].Close()
				if err := top.result(t, result); !errors.Is(err, w.run) {
					t.Errorf("Run returns %v, want %v", err, w.run)
				}
				top.check(t, w.run == nil)
			})
		})
	}
}

// TestAskIsToldThatItsQuestionWasDropped checks that a caller gets ErrFull when a newer
// message replaces its message in a full queue.
func TestAskIsToldThatItsQuestionWasDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top, _, open := shut(t, 2, dropOldest)
		var dropped, answered atomic.Int32
		for range 5 {
			g := top.externals[0].caller()
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
			t.Errorf("%d callers got ErrFull, want 3", dropped.Load())
		}
		open()
		top.ends(t, top.start(t.Context()))
		synctest.Wait()
		if answered.Load() != 2 {
			t.Errorf("%d callers got a reply, want 2", answered.Load())
		}
	})
}

// TestAskUnderTheStepper checks that Ask runs steps until it gets its reply.
func TestAskUnderTheStepper(t *testing.T) {
	for seed := range uint64(20) {
		top := build(t, []proc{{external: true}, {}, feed(1, 50, 1)}, []edge{{from: 0, to: 1}, {from: 2, to: 1}})
		s := top.pool.Stepper(seed)
		g := top.externals[0].caller()
		for range 20 {
			if _, err := g.ask(t.Context(), 0, 0, 0, message{}); err != nil {
				t.Fatal(err)
			}
		}
		top.externals[0].Close()
		if err := s.Run(); err != nil {
			t.Fatal(err)
		}
		top.check(t, true)
	}
}
