package piper_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

// onFailure is a supervisor that restarts each failed instance of a processor with a
// Watch at once.
func onFailure(procs []proc) *supervise.Supervisor {
	spec := supervise.Spec{}
	for i := range procs {
		p := supervise.Processor{Instances: max(1, procs[i].instances)}
		if p.Name = procs[i].name; procs[i].watch != nil {
			p.Supervised, p.Policy = true, supervise.OnFailure
		}
		spec.Processors = append(spec.Processors, p)
	}
	return supervise.New(spec)
}

// TestAHangLosesNothing has 200 calls that return, followed by a call that hangs. All
// their messages must arrive, including messages of the call that hangs and of its second
// attempt.
func TestAHangLosesNothing(t *testing.T) {
	for _, blocking := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			forever := make(chan struct{})
			defer close(forever)
			calls, arrived := 0, 0
			procs := []proc{
				feed(0, 203, 1),
				{name: "hangs", blocking: blocking, watch: &piper.Watch{Timeout: time.Second, Attempts: 2}, receive: func(c *cell, m *message) error {
					calls++
					if err := c.send(1, 0, *m); err != nil {
						return err
					}
					if calls == 201 {
						c.body.left = true
						c.past.hung.Add(1) // must be the last access to c
						<-forever
					}
					return nil
				}},
				{receive: func(*cell, *message) error { arrived++; return nil }},
			}
			top := supervised(t, onFailure(procs), procs, []edge{{from: 0, to: 1}, {from: 1, to: 2}}, piper.Workers(1))
			if err := top.run(t, t.Context()); err != nil {
				t.Errorf("blocking %v: Run returns %v", blocking, err)
			}
			if f := top.pool.Snapshot().Edges[1]; arrived != 204 || f.Sent != 204 || f.Received != 204 || f.Dropped != 0 {
				t.Errorf("blocking %v: %d messages arrived, %+v", blocking, arrived, f)
			}
			top.report(t)
		})
	}
}

// TestOutputDoesNotWaitForTheNextCall has a call that sends, followed by a call that takes
// two seconds. The messages of the first call must arrive at an idle receiver within a
// few periods of the monitor, along one edge and along several.
func TestOutputDoesNotWaitForTheNextCall(t *testing.T) {
	for _, edges := range [][]edge{
		{{from: 0, to: 1}, {from: 1, to: 2}},
		{{from: 0, to: 1}, {from: 1, to: 2}, {from: 1, to: 2}},
		{{from: 0, to: 1}, {from: 1, to: 2, full: dropOldest}, {from: 1, to: 2}},
	} {
		for _, workers := range []int{1, 2} {
			synctest.Test(t, func(t *testing.T) {
				var sent, arrived time.Time
				procs := []proc{
					feed(0, 2, 1),
					{receive: func(c *cell, m *message) error {
						if sent.IsZero() {
							sent = time.Now()
							return c.send(len(edges)-1, 0, *m)
						}
						time.Sleep(2 * time.Second)
						return nil
					}},
					{receive: func(*cell, *message) error { arrived = time.Now(); return nil }},
				}
				top := build(t, procs, edges, piper.Workers(workers), new(journal).option())
				top.runWhole(t)
				if took := arrived.Sub(sent); took < 0 || took > 25*time.Millisecond {
					t.Errorf("%d edges, %d workers: the message took %v", len(edges), workers, took)
				}
			})
		}
	}
}

// TestAnInstanceOfItsOwnPublishesEachCall has a tick, a message and a Ping of a
// blocking instance in the same turn. The messages of each call must not wait for the
// next call.
func TestAnInstanceOfItsOwnPublishesEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent, arrived time.Time
		procs := []proc{
			feed(0, 1, 1),
			{blocking: true,
				receive: func(c *cell, m *message) error { sent = time.Now(); return c.send(1, 0, *m) },
				ping: func(*cell) error {
					if sent.IsZero() {
						return topo.Idle
					}
					time.Sleep(2 * time.Second)
					return topo.Done
				}},
			{receive: func(*cell, *message) error { arrived = time.Now(); return nil }},
		}
		build(t, procs, []edge{{from: 0, to: 1}, {from: 1, to: 2}}, piper.Workers(1), new(journal).option()).runWhole(t)
		if took := arrived.Sub(sent); took < 0 || took > 25*time.Millisecond {
			t.Errorf("the message took %v", took)
		}
	})
}

// TestWhatAFinishedCallHasSentIsCounted has calls whose messages are not published when
// Run ends with an error, because another call of the same turn fails or does not
// return.
func TestWhatAFinishedCallHasSentIsCounted(t *testing.T) {
	for name, ends := range map[string]func(c *cell) error{
		"an error":     func(*cell) error { return errFailed },
		"a panic":      func(*cell) error { panic(errFailed) },
		"a hang":       func(c *cell) error { <-c.ctx.Done(); <-c.state.(chan struct{}); return nil },
		"out of time":  func(c *cell) error { <-c.ctx.Done(); return nil },
		"sent at last": func(c *cell) error { <-c.ctx.Done(); return c.send(1, 0, message{}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			forever := make(chan struct{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			calls := uint64(0)
			procs := []proc{
				feed(0, 11, 1),
				{receive: func(c *cell, m *message) error {
					if calls++; calls == 11 {
						c.state = forever
						return ends(c)
					}
					return c.send(1, 0, *m)
				}},
				{blocking: true, receive: func(c *cell, _ *message) error { <-c.ctx.Done(); return nil }},
			}
			top := build(t, procs, []edge{{from: 0, to: 1}, {from: 1, to: 2}}, piper.Workers(1), piper.DrainTimeout(time.Second), new(journal).option())
			if err := top.run(t, ctx); !errors.Is(err, errFailed) && !errors.Is(err, piper.ErrDrainTimeout) {
				t.Errorf("%s: Run returns %v", name, err)
			}
			want := uint64(10)
			if name == "sent at last" {
				want++
			}
			if f := top.pool.Snapshot().Edges[1]; f.Sent != want || f.Received+f.Dropped+uint64(f.Len) != want {
				t.Errorf("%s: %+v, want %d sent", name, f, want)
			}
			close(forever)
			synctest.Wait()
			top.report(t)
		})
	}
}

// TestAnAbandonedHandlerIsTold checks that the context of an abandoned handler ends,
// and its cause.
func TestAnAbandonedHandlerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hangs = 200 // more than three times as many as may hang at the same time
		var canceled atomic.Int64
		procs := []proc{
			feed(0, hangs, 1),
			{watch: &piper.Watch{Timeout: 100 * time.Millisecond, Attempts: 1}, receive: func(c *cell, m *message) error {
				ctx := c.ctx
				c.body.left = true
				c.past.hung.Add(1) // must be the last access to c
				<-ctx.Done()
				if errors.Is(context.Cause(ctx), piper.ErrHung) {
					canceled.Add(1)
				}
				return nil
			}},
		}
		top := supervised(t, onFailure(procs), procs, []edge{{from: 0, to: 1}}, piper.Workers(1))
		if err := top.run(t, t.Context()); err != nil {
			t.Errorf("Run returns %v", err)
		}
		synctest.Wait()
		if f := top.pool.Snapshot().Faults; canceled.Load() != hangs || f.Abandoned != hangs || f.Dropped != hangs {
			t.Errorf("the contexts of %d handlers ended, %+v", canceled.Load(), f)
		}
		top.report(t)
	})
}

// TestHangsLeaveNothing checks that handlers that hang and return late do not leak
// memory.
func TestHangsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds, each = 10, 30
		var heaps []uint64
		procs := []proc{
			{ping: func(c *cell) error {
				if len(heaps) == rounds {
					return topo.Done
				}
				return c.send(0, 0, message{})
			}},
			{watch: &piper.Watch{Timeout: time.Millisecond, Attempts: 1}, receive: func(c *cell, m *message) error {
				for range 20 {
					if err := c.send(1, 0, *m); err != nil {
						return err
					}
				}
				ctx := c.ctx
				c.body.left = true
				c.past.hung.Add(1) // must be the last access to c
				<-ctx.Done()
				return nil
			}},
			{receive: func(c *cell, m *message) error {
				if m.lane%(20*each) == 0 {
					var s runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&s)
					heaps = append(heaps, s.HeapAlloc)
				}
				return nil
			}},
		}
		top := supervised(t, onFailure(procs), procs, []edge{{from: 0, to: 1, capacity: 2}, {from: 1, to: 2}}, piper.Workers(1))
		if err := top.run(t, t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if grown, hangs := int64(heaps[rounds-1]-heaps[1]), int64((rounds-2)*each); grown > hangs*1024 {
			t.Errorf("the heap has grown by %d bytes in %d hangs", grown, hangs)
		}
		top.report(t)
	})
}
