package piper_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// asked is a topology in which an external processor asks an instance that shares its only worker
// with two others. The worker is parked. others may be nil.
func asked(t *testing.T, receive, others func(top *topology, c *cell, m *message) error) (top *topology, result <-chan error) {
	t.Helper()
	hook := func(of func(*topology, *cell, *message) error) func(*cell, *message) error {
		if of == nil {
			return nil
		}
		return func(c *cell, m *message) error { return of(top, c, m) }
	}
	top = build(t, []proc{
		{external: true},
		{receive: hook(receive)},
		{instances: 2, receive: hook(others)},
	}, []edge{{from: 0, to: 1}, {from: 0, to: 2}}, piper.Workers(1))
	result = top.start(t.Context())
	untilIdle(top)
	return top, result
}

// untilIdle waits until all workers are parked.
func untilIdle(top *topology) {
	for !piper.Idle(top.pool) {
		runtime.Gosched()
	}
}

// TestAnAskOfAnIdleInstanceWakesNobody looks from the handler whether the goroutine of the worker
// sleeps. It must, unless the caller may give up.
func TestAnAskOfAnIdleInstanceWakesNobody(t *testing.T) {
	asleep := false
	top, result := asked(t, func(top *topology, _ *cell, _ *message) error {
		asleep = piper.Idle(top.pool)
		return nil
	}, nil)
	limited, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, ctx := range map[string]context.Context{"without a limit": context.Background(), "that may end": limited} {
		untilIdle(top)
		if _, err := top.externals[0].caller().ask(ctx, 0, 0, 0, message{}); err != nil {
			t.Fatal(err)
		}
		if asleep != (ctx.Done() == nil) {
			t.Errorf("Ask with a context %s: the goroutine of the worker sleeps: %v", name, asleep)
		}
	}
	top.ends(t, result)
}

// yields are enough for another goroutine to run an instance, if it could.
const yields = 1000

// TestALongAskReleasesItsWorker asks with a handler that waits until the other instances of the
// same worker have handled messages, one after the other. Later the first instance must handle
// messages again.
func TestALongAskReleasesItsWorker(t *testing.T) {
	began := make(chan struct{}, 3)
	handled := make(chan struct{})
	var inside atomic.Int32
	top, result := asked(t, func(*topology, *cell, *message) error {
		began <- struct{}{}
		<-handled
		return nil
	}, func(*topology, *cell, *message) error {
		if inside.Add(1) > 1 {
			t.Error("two goroutines run one worker")
		}
		for range yields {
			runtime.Gosched()
		}
		inside.Add(-1)
		return nil
	})
	g := top.externals[0].caller()
	go func() {
		<-began
		if err := g.send(context.Background(), 1, 1, message{}); err != nil {
			t.Error(err)
		}
		if _, err := g.ask(context.Background(), 0, 1, 0, message{}); err != nil {
			t.Error(err)
		}
		close(handled)
	}()
	for range 3 {
		if _, err := top.externals[0].caller().ask(context.Background(), 0, 0, 0, message{}); err != nil {
			t.Error(err)
		}
	}
	top.ends(t, result)
}

// TestAnAskHandlesNoRequestAfterItsOwn has a second request in the queue, whose handler waits for
// the first caller.
func TestAnAskHandlesNoRequestAfterItsOwn(t *testing.T) {
	returned := make(chan struct{})
	second := make(chan error, 1)
	calls := 0
	top, result := asked(t, func(top *topology, _ *cell, _ *message) error {
		if calls++; calls == 1 {
			other := top.externals[0].caller()
			return other.send(context.Background(), 0, 0, message{})
		}
		<-returned
		close(second)
		return nil
	}, nil)
	if _, err := top.externals[0].caller().ask(context.Background(), 0, 0, 0, message{}); err != nil {
		t.Error(err)
	}
	close(returned)
	<-second
	top.ends(t, result)
}

// TestANoteDuringAnAsk sends a message to the other instance of the worker while a caller runs it.
func TestANoteDuringAnAsk(t *testing.T) {
	handled := make(chan struct{})
	top, result := asked(t, func(top *topology, _ *cell, _ *message) error {
		return top.externals[0].caller().send(context.Background(), 1, 0, message{})
	}, func(*topology, *cell, *message) error {
		close(handled)
		return nil
	})
	if _, err := top.externals[0].caller().ask(context.Background(), 0, 0, 0, message{}); err != nil {
		t.Error(err)
	}
	<-handled
	top.ends(t, result)
}

// TestAnAskDuringAnAsk has a second caller while the first one runs the instance.
func TestAnAskDuringAnAsk(t *testing.T) {
	var second sync.WaitGroup
	calls, inside := 0, 0
	top, result := asked(t, func(top *topology, _ *cell, _ *message) error {
		if inside++; inside > 1 {
			t.Error("two goroutines run one instance")
			return nil
		}
		if calls++; calls == 1 {
			second.Go(func() {
				if _, err := top.externals[0].caller().ask(context.Background(), 0, 0, 0, message{}); err != nil {
					t.Error(err)
				}
			})
			for range yields {
				runtime.Gosched()
			}
		}
		inside--
		return nil
	}, nil)
	if _, err := top.externals[0].caller().ask(context.Background(), 0, 0, 0, message{}); err != nil {
		t.Error(err)
	}
	second.Wait()
	top.ends(t, result)
}

// TestACrashInAnAsk has a handler that panics, or ends its goroutine, on the goroutine that asks.
func TestACrashInAnAsk(t *testing.T) {
	crash := func(t *testing.T, how func()) (err error, returned bool) {
		top, result := asked(t, func(*topology, *cell, *message) error { how(); return nil }, nil)
		var asking sync.WaitGroup
		asking.Go(func() {
			_, err = top.externals[0].caller().ask(context.Background(), 0, 0, 0, message{})
			returned = true
		})
		asking.Wait()
		failure, isHandlerError := errors.AsType[*piper.HandlerError](top.result(t, result))
		if !isHandlerError || failure.Method != "Receive" {
			t.Errorf("Run returns %v", failure)
		}
		return err, returned
	}
	if err, returned := crash(t, func() { panic(errFailed) }); !returned || !errors.Is(err, topo.ErrStopping) {
		t.Errorf("after a panic Ask returns %v (it returns: %v)", err, returned)
	}
	if _, returned := crash(t, runtime.Goexit); returned {
		t.Error("Ask returns although the handler has ended the goroutine")
	}
}

// TestManyAskAtOnce has callers that find the worker parked, borrowed or busy. Each request must
// be handled once, by one goroutine at a time, which the cell checks.
func TestManyAskAtOnce(t *testing.T) {
	const callers = 4
	asks := speed.Pick(t, 300, 3_000, 3_000)
	top := build(t, []proc{{external: true}, {instances: 2}, {}},
		[]edge{{from: 0, to: 1, capacity: 2}, {from: 0, to: 2}, {from: 1, to: 2}}, piper.Workers(2))
	result := top.start(t.Context())
	var all sync.WaitGroup
	for i := range callers {
		g := top.externals[0].caller()
		all.Go(func() {
			for n := range asks {
				if _, err := g.ask(context.Background(), 0, 0, (i+n)%2, message{hops: 1}); err != nil {
					top.violated("Ask returns %v", err)
				}
				if n%8 == i {
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
	top.ends(t, result)
}
