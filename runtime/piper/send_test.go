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

// shut builds door -> desk, with a queue of the given capacity. The receiver is blocked
// until open is called.
func shut(t *testing.T, capacity int, f full) (top *topology, g *caller, open func()) {
	t.Helper()
	stuck := make(chan struct{})
	top = build(t, []proc{
		{name: "door", external: true},
		{name: "desk", blocking: true, receive: func(*cell, *message) error { <-stuck; return nil }},
	}, []edge{{from: 0, to: 1, capacity: capacity, full: f}})
	return top, top.externals[0].caller(), sync.OnceFunc(func() { close(stuck) })
}

// fill sends until the queue of a blocked receiver is full.
func fill(t *testing.T, g *caller, n int) {
	t.Helper()
	for range n {
		if err := g.send(t.Context(), 0, 0, message{}); err != nil {
			t.Fatal(err)
		}
	}
}

// ends waits for the end of a topology.
func (top *topology) ends(t *testing.T, result <-chan error) {
	t.Helper()
	top.externals[0].Close()
	if err := top.result(t, result); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
}

func TestASendWaitsWhileFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top, g, open := shut(t, 4, block)
		fill(t, g, 4)
		var sent atomic.Int32
		for range 5 {
			g := top.externals[0].caller()
			go func() {
				if err := g.send(context.Background(), 0, 0, message{}); err != nil {
					t.Error(err)
				}
				sent.Add(1)
			}()
		}
		synctest.Wait()
		if sent.Load() != 0 {
			t.Errorf("%d sends did not wait for room", sent.Load())
		}
		open()
		result := top.start(t.Context())
		synctest.Wait()
		if sent.Load() != 5 {
			t.Errorf("%d of 5 sends returned", sent.Load())
		}
		top.ends(t, result)
	})
}

func TestASendThatWaitsEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top, g, open := shut(t, 4, block)
		fill(t, g, 4)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.send(ctx, 0, 0, message{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its deadline a send returns %v", err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.send(canceled, 0, 0, message{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a canceled send returns %v", err)
		}
		open()
		top.ends(t, top.start(t.Context()))
		if got := top.graph().Edge(0).Sent(); got != 4 {
			t.Errorf("%d messages were sent", got)
		}
	})
}

func TestASendToAFullQueueThatFails(t *testing.T) {
	top, g, open := shut(t, 4, fail)
	fill(t, g, 4)
	if err := g.send(t.Context(), 0, 0, message{}); !errors.Is(err, topo.ErrFull) {
		t.Errorf("a send returns %v", err)
	}
	if _, err := g.ask(t.Context(), 0, 0, 0, message{}); !errors.Is(err, topo.ErrFull) {
		t.Errorf("Ask returns %v", err)
	}
	open()
	top.ends(t, top.start(t.Context()))
}

// TestASendFromOutsideToAllOrNone sends to a queue with room and to a full queue.
func TestASendFromOutsideToAllOrNone(t *testing.T) {
	top := build(t, []proc{{external: true}, {}, {}},
		[]edge{{from: 0, to: 1}, {from: 0, to: 2, capacity: 3, full: fail}})
	g := top.externals[0].caller()
	refused := 0
	for range 10 {
		if err := g.sendAll(t.Context(), message{}, target{0, 0}, target{1, 0}); errors.Is(err, topo.ErrFull) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	top.ends(t, top.start(t.Context()))
	if a, b := top.graph().Edge(0).Sent(), top.graph().Edge(1).Sent(); a != 3 || b != 3 || refused != 7 {
		t.Errorf("sent %d and %d, refused %d", a, b, refused)
	}
}

// TestManyCloseAtOnce checks that Close may be called several times from any goroutine,
// and that later sends return ErrClosed, also to an instance that got no message
// before.
func TestManyCloseAtOnce(t *testing.T) {
	top := build(t, []proc{{external: true}, {instances: 8}}, []edge{{from: 0, to: 1, capacity: 2}})
	result := top.start(t.Context())
	var wait sync.WaitGroup
	for i := range 8 {
		g := top.externals[0].caller()
		wait.Go(func() {
			for n := 0; ; n++ {
				if n == 1000 {
					top.externals[0].Close()
				}
				err := g.send(context.Background(), 0, (i+n)%7, message{})
				if errors.Is(err, topo.ErrClosed) {
					return
				} else if err != nil || n > 1000 {
					top.violated("a send returns %v", err)
					return
				}
			}
		})
	}
	wait.Wait()
	g := top.externals[0].caller()
	for range 3 {
		if err := g.send(t.Context(), 0, 7, message{}); !errors.Is(err, topo.ErrClosed) {
			t.Errorf("after Close a send returns %v", err)
		}
	}
	if _, err := g.ask(t.Context(), 0, 0, 0, message{}); !errors.Is(err, topo.ErrClosed) {
		t.Errorf("after Close Ask returns %v", err)
	}
	top.ends(t, result)
	if err := g.send(t.Context(), 0, 0, message{}); !errors.Is(err, topo.ErrClosed) {
		t.Errorf("after Run a send to a closed sender returns %v", err)
	}
}

// TestASendBeforeRun checks that a message sent before Run stays in its queue.
func TestASendBeforeRun(t *testing.T) {
	top := build(t, []proc{{external: true}, {instances: 3}}, []edge{{from: 0, to: 1}})
	g := top.externals[0].caller()
	for i := range 30 {
		if err := g.send(t.Context(), 0, i%3, message{}); err != nil {
			t.Fatal(err)
		}
	}
	top.ends(t, top.start(t.Context()))
}

// TestARouteToNoInstanceIsCounted checks that such a send fails and counts as dropped.
func TestARouteToNoInstanceIsCounted(t *testing.T) {
	top := build(t, []proc{
		{external: true},
		{receive: func(c *cell, _ *message) error {
			if err := c.out.NoInstance(1); !errors.Is(err, topo.ErrNoInstance) {
				c.violated("NoInstance returns %v", err)
			}
			return nil
		}},
	}, []edge{{from: 0, to: 1}, {from: 1, to: 1}})
	fill(t, top.externals[0].caller(), 1)
	if err := top.externals[0].x.NoInstance(0); !errors.Is(err, topo.ErrNoInstance) {
		t.Errorf("NoInstance returns %v", err)
	}
	top.externals[0].Close()
	if err := top.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, f := range top.pool.Snapshot().Edges {
		if f.Dropped != 1 || f.Sent != f.Received+1 {
			t.Errorf("edge %d: %+v", i, f)
		}
	}
	top.report(t)
}

// TestASendToNoInstanceLooksAtTheState checks that a send that enters no queue returns the same
// errors as other sends after Close, at a stop, and after its context has ended. Then it
// counts nothing.
func TestASendToNoInstanceLooksAtTheState(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	unfit := errors.New("the message cannot be encoded")
	for _, c := range []struct {
		name           string
		ctx            context.Context
		before         func(top *topology)
		lock           error // of Lock without targets
		nowhere, unfit error
		dropped        uint64
	}{
		{"open", t.Context(), func(*topology) {}, nil, topo.ErrNoInstance, unfit, 2},
		{"ended context", ended, func(*topology) {}, context.Canceled, context.Canceled, context.Canceled, 0},
		{"closed", t.Context(), func(top *topology) { top.externals[0].Close() }, topo.ErrClosed, topo.ErrClosed, topo.ErrClosed, 0},
		{"stopped", t.Context(), func(top *topology) { top.run(t, ended) }, topo.ErrStopping, topo.ErrStopping, topo.ErrStopping, 0},
	} {
		top := build(t, []proc{{external: true}, {}}, []edge{{from: 0, to: 1}})
		c.before(top)
		x := top.externals[0].x
		if err := x.Lock(c.ctx); !errors.Is(err, c.lock) {
			t.Errorf("%s: Lock returns %v, want %v", c.name, err, c.lock)
		}
		if err := x.SendNowhere(c.ctx, 0); !errors.Is(err, c.nowhere) {
			t.Errorf("%s: SendNowhere returns %v, want %v", c.name, err, c.nowhere)
		}
		if err := x.Refuse(c.ctx, 0, unfit); !errors.Is(err, c.unfit) {
			t.Errorf("%s: Refuse returns %v, want %v", c.name, err, c.unfit)
		}
		if f := top.pool.Snapshot().Edges[0]; f.Sent != c.dropped || f.Dropped != c.dropped {
			t.Errorf("%s: sent and dropped %d and %d, want %d", c.name, f.Sent, f.Dropped, c.dropped)
		}
	}
}

// TestAServeSendWaitsWhileFull checks that each send of Serve publishes at once, and
// returns when the queue is at most half full.
func TestAServeSendWaitsWhileFull(t *testing.T) {
	each(t, func(t *testing.T) *topology {
		return build(t, []proc{
			{serve: func(c *cell, _ context.Context) error {
				for range 2000 {
					if err := c.send(0, 0, message{}); err != nil {
						return err
					}
				}
				return nil
			}},
			{},
		}, []edge{{from: 0, to: 1, capacity: 3}}, piper.Workers(1))
	})
}

// TestAServeSendIsSeenAtOnce has a Serve that waits after each send until its message
// is handled.
func TestAServeSendIsSeenAtOnce(t *testing.T) {
	handled := make(chan struct{})
	top := build(t, []proc{
		{serve: func(c *cell, _ context.Context) error {
			for range 100 {
				if err := c.send(0, 0, message{}); err != nil {
					return err
				}
				<-handled
			}
			return nil
		}},
		{receive: func(*cell, *message) error { handled <- struct{}{}; return nil }},
	}, []edge{{from: 0, to: 1}})
	top.runWhole(t)
}
