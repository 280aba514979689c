package piper_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// TestStopDrains ends the context during a run: Ping must not be called again, every
// accepted message must be handled, and Run must return nil.
func TestStopDrains(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	handled := 0
	top := build(t, []proc{
		{ping: func(c *cell) error { return c.send(0, 0, message{}) }}, // never done
		{
			receive: func(c *cell, m *message) error {
				if handled++; handled == 5000 {
					cancel()
				}
				return c.send(1, 0, *m)
			},
			finish: func(c *cell) error { return c.send(1, 0, message{}) },
		},
		{finish: func(*cell) error { return nil }},
	}, []edge{{from: 0, to: 1}, {from: 1, to: 2, capacity: 10}}, piper.Workers(2))
	if err := top.run(t, ctx); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
}

// TestStopBeforeRun checks that Run with a context that has already ended drains the
// queued messages.
func TestStopBeforeRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	top := build(t, []proc{{external: true}, {finish: func(*cell) error { return nil }}}, []edge{{from: 0, to: 1}})
	if err := top.externals[0].caller().send(ctx, 0, 0, message{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := top.run(t, ctx); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
	if got := top.graph().Edge(0).Received(); got != 1 {
		t.Errorf("%d messages were handled", got)
	}
}

// TestStopEndsWaitingSends checks that sends from outside and of Serve that wait for
// room return ErrStopping, as later sends do, and that the context of Serve ends.
func TestStopEndsWaitingSends(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stuck := make(chan struct{})
	var served, callers atomic.Int32
	top := build(t, []proc{
		{external: true},
		{serve: func(c *cell, ctx context.Context) error {
			for {
				if err := c.send(1, 0, message{}); err != nil {
					served.Add(1)
					if again := c.send(1, 0, message{}); !errors.Is(err, topo.ErrStopping) || !errors.Is(again, topo.ErrStopping) {
						c.violated("sends return %v and %v", err, again)
					}
					<-ctx.Done()
					return err
				}
			}
		}},
		{blocking: true, receive: func(*cell, *message) error { <-stuck; return nil }},
	}, []edge{{from: 0, to: 2, capacity: 4}, {from: 1, to: 2, capacity: 4}})
	result := top.start(ctx)
	for range 3 {
		g := top.externals[0].caller()
		go func() {
			for {
				if err := g.send(context.Background(), 0, 0, message{}); err != nil {
					if !errors.Is(err, topo.ErrStopping) {
						top.violated("a send returns %v", err)
					}
					callers.Add(1)
					return
				}
			}
		}()
	}
	graph := top.graph()
	until(t, func() bool { return graph.Edge(0).Len() >= 4 && graph.Edge(1).Len() >= 4 })
	cancel()
	until(t, func() bool { return callers.Load() == 3 && served.Load() == 1 })
	close(stuck)
	if err := top.result(t, result); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
}

// TestDrainTimeoutCounts checks that the messages that are not drained in time are
// counted on each edge.
func TestDrainTimeoutCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := make(chan struct{}, 1)
		top := build(t, []proc{
			{external: true},
			{name: "store", blocking: true, receive: func(c *cell, _ *message) error {
				began <- struct{}{}
				<-c.Context().Done() // ends at the drain timeout
				return nil
			}, finish: func(*cell) error { return nil }},
		}, []edge{{from: 0, to: 1}}, piper.DrainTimeout(3*time.Second))
		g := top.externals[0].caller()
		for range 8 {
			if err := g.send(ctx, 0, 0, message{}); err != nil {
				t.Fatal(err)
			}
		}
		result := top.start(ctx)
		<-began
		stopped := time.Now()
		cancel()
		err := top.result(t, result)
		if !errors.Is(err, piper.ErrDrainTimeout) || time.Since(stopped) < 3*time.Second || time.Since(stopped) > 3100*time.Millisecond {
			t.Fatalf("after %v Run returns %v", time.Since(stopped), err)
		}
		if !strings.Contains(err.Error(), "p0 -> store: M0: 8 messages left") && !strings.Contains(err.Error(), "p0 -> store: M0: 7 messages left") {
			t.Errorf("the error does not count the remaining messages: %v", err)
		}
		top.check(t, false)
		if top.all[0].finished {
			t.Error("Finish was called")
		}
	})
}

// TestAHandlerThatNeverReturnsIsLeftBehind checks that Run ends although a handler
// hangs, that the error names the instance, and that the instance is not closed.
func TestAHandlerThatNeverReturnsIsLeftBehind(t *testing.T) {
	for _, blocking := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stuck, began := make(chan struct{}), make(chan struct{})
			closed := make(map[string]bool)
			note := func(c *cell) error { closed[c.top.name(c.index)] = true; return nil }
			top := build(t, []proc{
				feed(0, 1, 1),
				{name: "stuck", blocking: blocking, receive: func(*cell, *message) error { close(began); <-stuck; return nil }, close: note},
				{name: "other", close: note},
			}, []edge{{from: 0, to: 1}, {from: 1, to: 2}}, piper.DrainTimeout(time.Second), piper.Workers(1))
			result := top.start(ctx)
			<-began
			cancel()
			err := top.result(t, result)
			if !errors.Is(err, piper.ErrDrainTimeout) || !strings.Contains(err.Error(), `processor "stuck", instance 0: a call has not returned`) {
				t.Errorf("Run returns %v", err)
			}
			if closed["stuck"] || !closed["other"] {
				t.Errorf("closed: %v", closed)
			}
			close(stuck)
			synctest.Wait()
			top.report(t)
		})
	}
}

// TestStopDuringInit ends the context while an Init waits. After the drain timeout Init
// must be abandoned, and the initialized instances closed. An Init that returns earlier
// must have a context that has not ended, and accepted messages must be handled.
func TestStopDuringInit(t *testing.T) {
	for name, takes := range map[string]time.Duration{"too long": time.Hour, "in time": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var used context.Context
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				top := build(t, []proc{{external: true}, {}, {init: func(_ *cell, ctx context.Context) error {
					used = ctx
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(takes):
						return nil
					}
				}}}, []edge{{from: 0, to: 1}, {from: 0, to: 2}}, piper.DrainTimeout(5*time.Second))
				if err := top.externals[0].caller().send(ctx, 0, 0, message{}); err != nil {
					t.Fatal(err)
				}
				began, handled := time.Now(), uint64(1)
				err := top.pool.Run(ctx)
				if takes == time.Hour {
					handled = 0
					if took := time.Since(began); took != 6*time.Second || !errors.Is(err, piper.ErrDrainTimeout) || !errors.Is(err, context.Canceled) {
						t.Errorf("after %v Run returns %v", took, err)
					}
				} else if err != nil {
					t.Error(err)
				}
				if used.Err() == nil {
					t.Error("the context of Init has not ended after Run")
				}
				if got := top.graph().Edge(0).Received(); got != handled {
					t.Errorf("%d messages were handled, want %d", got, handled)
				}
			})
		})
	}
}

func TestASecondRunIsAnError(t *testing.T) {
	top := build(t, []proc{feed(0, 10, 1), {}}, []edge{{from: 0, to: 1}})
	top.runWhole(t)
	if err := top.pool.Run(t.Context()); !errors.Is(err, piper.ErrStarted) {
		t.Errorf("a second Run returns %v", err)
	}
	stepped := build(t, []proc{{}}, nil)
	stepped.pool.Stepper(1)
	if err := stepped.pool.Run(t.Context()); !errors.Is(err, piper.ErrStarted) {
		t.Errorf("Run beside a Stepper returns %v", err)
	}
}
