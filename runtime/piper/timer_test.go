package piper_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// TestTimersTickAtMultiplesOfTheirPeriod checks that a handler that takes longer than
// the period causes skipped ticks, which are counted, and no drift. A late tick has the
// time at which it was due.
func TestTimersTickAtMultiplesOfTheirPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		var due, at []time.Duration
		var numbers []uint64
		top := build(t, []proc{{blocking: true, tick: func(_ *cell, tick topo.Tick) error {
			due, at, numbers = append(due, tick.Time.Sub(began)), append(at, time.Since(began)), append(numbers, tick.N)
			switch len(at) {
			case 3:
				time.Sleep(35 * time.Millisecond) // the ticks of 40, 50 and 60 ms are due during the sleep
			case 6:
				cancel()
			}
			return nil
		}}}, []edge{{from: timer, to: 0, every: 10 * time.Millisecond}})
		if err := top.run(t, ctx); err != nil {
			t.Fatal(err)
		}
		top.check(t, true)
		ms := time.Millisecond
		if want := []time.Duration{10 * ms, 20 * ms, 30 * ms, 40 * ms, 70 * ms, 80 * ms}; !slices.Equal(due, want) {
			t.Errorf("ticks due at %v, want %v", due, want)
		}
		if want := []time.Duration{10 * ms, 20 * ms, 30 * ms, 65 * ms, 70 * ms, 80 * ms}; !slices.Equal(at, want) {
			t.Errorf("ticks at %v, want %v", at, want)
		}
		if want := []uint64{1, 2, 3, 4, 7, 8}; !slices.Equal(numbers, want) {
			t.Errorf("tick numbers %v, want %v", numbers, want)
		}
		if e := top.graph().Edge(0); e.Sent() != 8 || e.Received() != 6 || e.Dropped() != 2 {
			t.Errorf("sent %d, received %d, skipped %d", e.Sent(), e.Received(), e.Dropped())
		}
	})
}

// TestATickAfterASleepOfTheComputer checks that a tick has the time of day at which it was due,
// although the clock of the topology has not counted the time in which the computer slept. It
// runs in real time, because virtual time has no monotonic clock.
func TestATickAfterASleepOfTheComputer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var late, lateByDay time.Duration
	top := build(t, []proc{{tick: func(_ *cell, tick topo.Tick) error {
		now := time.Now()
		late, lateByDay = now.Sub(tick.Time), now.Round(0).Sub(tick.Time) // Round removes the monotonic clock
		cancel()
		return nil
	}}}, []edge{{from: timer, to: 0, every: time.Millisecond}})
	piper.Slept(top.pool, 8*time.Hour)
	if err := top.run(t, ctx); err != nil {
		t.Fatal(err)
	}
	if late < 0 || late > time.Hour || lateByDay < -time.Hour || lateByDay > time.Hour {
		t.Errorf("the tick is %v late, and %v by the time of day", late, lateByDay)
	}
	if at := top.pool.Snapshot().Time; time.Until(at.Round(0)).Abs() > time.Hour {
		t.Errorf("a snapshot of now has the time %v", at)
	}
}

// TestATickThatComesWhileOneWaitsIsSkipped has a handler that hangs, while the timer
// continues on the worker that was taken over.
func TestATickThatComesWhileOneWaitsIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var log journal
		var numbers []uint64
		top := build(t, []proc{{tick: func(_ *cell, tick topo.Tick) error {
			switch numbers = append(numbers, tick.N); len(numbers) {
			case 3:
				time.Sleep(75 * time.Millisecond)
			case 6:
				cancel()
			}
			return nil
		}}}, []edge{{from: timer, to: 0, every: 10 * time.Millisecond}}, piper.Workers(1), log.option())
		if err := top.run(t, ctx); err != nil {
			t.Fatal(err)
		}
		top.check(t, true)
		if want := []uint64{1, 2, 3, 4, 11, 12}; !slices.Equal(numbers, want) {
			t.Errorf("tick numbers %v, want %v", numbers, want)
		}
		if e := top.graph().Edge(0); e.Sent() != 12 || e.Received() != 6 || e.Dropped() != 6 {
			t.Errorf("sent %d, received %d, skipped %d", e.Sent(), e.Received(), e.Dropped())
		}
	})
}

// TestTimersCloseWithTheLastOtherInput checks that the end of a source ends the
// topology, although its receiver has timers.
func TestTimersCloseWithTheLastOtherInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticks := 0
		top := build(t, []proc{
			{ping: func(c *cell) error {
				if c.calls == 5 {
					return topo.Done
				}
				if c.calls%2 == 0 {
					return topo.Idle
				}
				return c.send(0, 0, message{})
			}},
			{tick: func(*cell, topo.Tick) error { ticks++; return nil }, finish: func(*cell) error { return nil }},
		}, []edge{{from: 0, to: 1}, {from: timer, to: 1, every: time.Millisecond / 4}, {from: timer, to: 1, every: time.Hour}})
		top.runWhole(t)
		if ticks == 0 {
			t.Error("no tick came")
		}
	})
}

// TestTimersAloneRunUntilTheContextEnds also has an edge that leads back to the same
// processor.
func TestTimersAloneRunUntilTheContextEnds(t *testing.T) {
	for _, edges := range [][]edge{
		{{from: timer, to: 0, every: 100 * time.Millisecond}},
		{{from: timer, to: 0, every: 100 * time.Millisecond}, {from: 0, to: 0}},
		{{from: timer, to: 0, every: 100 * time.Millisecond}, {from: 0, to: 1}, {from: 1, to: 0}},
		{{from: timer, to: 0, every: 100 * time.Millisecond}, {from: 0, to: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second+time.Millisecond)
			defer cancel()
			ticks, finished := 0, 0
			top := build(t, []proc{
				{tick: func(c *cell, _ topo.Tick) error {
					ticks++
					if len(edges) > 1 {
						return c.send(1, 0, message{})
					}
					return nil
				}, finish: func(*cell) error { finished++; return nil }},
				{},
			}, edges)
			if err := top.run(t, ctx); err != nil {
				t.Fatal(err)
			}
			top.check(t, true)
			if ticks != 10 || finished != 1 {
				t.Errorf("%d ticks, Finish called %d times", ticks, finished)
			}
		})
	}
}

func TestTheSteppersClockTicks(t *testing.T) {
	ticks := 0
	top := build(t, []proc{{tick: func(*cell, topo.Tick) error { ticks++; return nil }}}, []edge{{from: timer, to: 0, every: time.Minute}})
	s := top.pool.Stepper(1)
	if err := s.Advance(time.Hour); err != nil || ticks != 60 {
		t.Fatalf("%d ticks in an hour, %v", ticks, err)
	}
	s.Stop()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
}
