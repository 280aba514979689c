package piper_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// gated is a topology whose handlers count their calls. It has a Ping, a Serve, a timer, an instance that blocks, and
// an external processor.
func gated(t *testing.T, calls *atomic.Int64, opts ...piper.Option) *topology {
	count := func(*cell, *message) error { calls.Add(1); return nil }
	return build(t, []proc{
		{external: true},
		{ping: func(c *cell) error { calls.Add(1); return c.send(2, 0, message{}) }},
		{serve: func(c *cell, ctx context.Context) error {
			for ctx.Err() == nil {
				calls.Add(1)
				if err := c.send(3, 0, message{}); err != nil {
					return err
				}
			}
			return nil
		}},
		{receive: count, tick: func(*cell, topo.Tick) error { calls.Add(1); return nil }},
		{blocking: true, receive: count},
	}, []edge{{from: 0, to: 3}, {from: timer, to: 3, every: time.Millisecond}, {from: 1, to: 3, capacity: 8}, {from: 2, to: 4, capacity: 8}}, opts...)
}

// TestNothingIsCalledBehindTheGate closes the gate of a busy topology again and again. No call begins until it
// opens, and all messages are handled once.
func TestNothingIsCalledBehindTheGate(t *testing.T) {
	var calls atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	top := gated(t, &calls, piper.Workers(2))
	result := top.start(ctx)
	for range speed.Pick(t, 20, 100, 100) {
		before := calls.Load()
		until(t, func() bool { return calls.Load() > before+100 })
		piper.CloseGate(top.pool)
		until(t, func() bool { return piper.AtGate(top.pool) })
		before = calls.Load()
		g, asked := top.externals[0].caller(), make(chan error, 1)
		go func() {
			_, err := g.ask(context.Background(), 0, 0, 0, message{})
			asked <- err
		}()
		until(t, func() bool { return top.graph().Edge(0).Len() > 0 && piper.AtGate(top.pool) })
		if n := calls.Load() - before; n > 0 {
			t.Fatalf("%d calls have begun behind the gate", n)
		}
		piper.OpenGate(top.pool, time.Time{})
		if err := <-asked; err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := top.result(t, result); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
}

// TestTheGateClosesWithinATurn closes the gate in a handler: the rest of its batch is handled after the gate has opened.
func TestTheGateClosesWithinATurn(t *testing.T) {
	const messages = 64
	handled := 0
	var top *topology
	top = build(t, []proc{{external: true}, {receive: func(*cell, *message) error {
		if handled++; handled == 5 {
			piper.CloseGate(top.pool)
		}
		return nil
	}}}, []edge{{from: 0, to: 1}}, piper.Workers(1))
	for range messages {
		if err := top.externals[0].caller().send(t.Context(), 0, 0, message{}); err != nil {
			t.Fatal(err)
		}
	}
	result := top.start(t.Context())
	until(t, func() bool { return piper.Waits(top.pool) == 1 })
	if handled != 5 {
		t.Errorf("%d messages were handled, want 5", handled)
	}
	piper.OpenGate(top.pool, time.Time{})
	top.ends(t, result)
	if handled != messages {
		t.Errorf("%d messages were handled in the end", handled)
	}
}

// TestAnAskOfAnIdleInstanceWaitsForTheGate: the goroutine of the caller does not run the handler itself.
func TestAnAskOfAnIdleInstanceWaitsForTheGate(t *testing.T) {
	var calls atomic.Int64
	top, result := asked(t, func(*topology, *cell, *message) error { calls.Add(1); return nil }, nil)
	piper.CloseGate(top.pool)
	g, answered := top.externals[0].caller(), make(chan error, 1)
	go func() {
		_, err := g.ask(context.Background(), 0, 0, 0, message{})
		answered <- err
	}()
	until(t, func() bool { return top.graph().Edge(0).Len() == 1 && piper.AtGate(top.pool) })
	if calls.Load() > 0 {
		t.Error("a handler was called behind the gate")
	}
	piper.OpenGate(top.pool, time.Time{})
	if err := <-answered; err != nil || calls.Load() != 1 {
		t.Errorf("after %d calls Ask returns %v", calls.Load(), err)
	}
	top.ends(t, result)
}

// TestTheGateAndTheEnd ends Run while the gate is closed: the queues are drained when it opens in time, otherwise
// the drain timeout passes.
func TestTheGateAndTheEnd(t *testing.T) {
	for _, opens := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			handled, inited := 0, false
			top := build(t, []proc{{external: true}, {
				init:    func(*cell, context.Context) error { inited = true; return nil },
				receive: func(*cell, *message) error { handled++; return nil },
			}}, []edge{{from: 0, to: 1}}, piper.DrainTimeout(10*time.Second))
			piper.CloseGate(top.pool)
			result := top.start(ctx)
			time.Sleep(time.Second) // virtual time
			if inited {
				t.Error("Init was called behind the gate")
			}
			piper.OpenGate(top.pool, time.Now().Add(2*time.Second))
			synctest.Wait()
			if !inited {
				t.Error("Init was not called after the gate was opened")
			}
			time.Sleep(3 * time.Second) // the gate closes by itself
			if err := top.externals[0].caller().send(ctx, 0, 0, message{}); err != nil {
				t.Fatal(err)
			}
			cancel()
			time.Sleep(8 * time.Second)
			if handled > 0 {
				t.Error("a handler was called behind the gate")
			}
			if opens {
				piper.OpenGate(top.pool, time.Now().Add(time.Minute))
			}
			err := top.result(t, result)
			if opens && (err != nil || handled != 1) || !opens && (!errors.Is(err, piper.ErrDrainTimeout) || handled > 0) {
				t.Errorf("after %d messages Run returns %v", handled, err)
			}
			top.check(t, opens)
		})
	}
}

// TestTheGateOfAStepper closes the gate between two steps.
func TestTheGateOfAStepper(t *testing.T) {
	var calls atomic.Int64
	top := gated(t, &calls)
	s := top.pool.Stepper(1)
	for range 50 {
		for range 30 {
			s.Step()
		}
		piper.CloseGate(top.pool)
		before := calls.Load()
		if _ = s.Advance(10 * time.Millisecond); s.Turn() || calls.Load() != before {
			t.Fatal("a handler was called behind the gate")
		}
		piper.OpenGate(top.pool, time.Time{})
	}
	if calls.Load() < 100 {
		t.Errorf("only %d calls", calls.Load())
	}
	s.Stop()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
}
