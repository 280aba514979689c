package piper_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// TestIdleDoublesFromOneMillisecondTo100 checks that an idle Ping is called again after
// 1 ms, doubling up to 100 ms, and after 1 ms again once it had something to do.
func TestIdleDoublesFromOneMillisecondTo100(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		top := build(t, []proc{{ping: func(*cell) error {
			at = append(at, time.Since(began).Round(time.Millisecond))
			switch len(at) {
			case 11: // busy once, so Ping is called again at once
				began = time.Now()
				return nil
			case 15:
				return topo.Done
			}
			return topo.Idle
		}}}, nil)
		top.runWhole(t)
		var want []time.Duration
		sum := 0
		for _, ms := range []int{0, 1, 2, 4, 8, 16, 32, 64, 100, 100, 100} {
			sum += ms
			want = append(want, time.Duration(sum)*time.Millisecond)
		}
		for _, ms := range []int{0, 1, 3, 7} {
			want = append(want, time.Duration(ms)*time.Millisecond)
		}
		if !slices.Equal(at, want) {
			t.Errorf("Ping was called at %v, want %v", at, want)
		}
	})
}

// TestThousandsOfIdleSources has twice as many idle sources as the workers call every 100 ms.
func TestThousandsOfIdleSources(t *testing.T) {
	const sources = 4000
	for _, workers := range []int{1, 2, 8} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			began := time.Now()
			top := build(t, []proc{{instances: sources, ping: func(*cell) error {
				switch now := time.Since(began); {
				case now > 6*time.Second:
					return topo.Done
				case now > time.Second:
					calls.Add(1)
				}
				return topo.Idle
			}}}, nil, piper.Workers(workers))
			top.runWhole(t)
			if a := calls.Load() / 5; a < 15_000 || a > 20_500 {
				t.Errorf("%d workers call %d Pings in a second, want 20,000 and not many less", workers, a)
			}
		})
	}
}

// TestIdleEndsWithTheNextMessage has a message every 250 ms. Ping must be called after
// each message, with pauses that double from 1 ms again. Timers that were set before a
// message must have no effect.
func TestIdleEndsWithTheNextMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages = 16
		var pings atomic.Int64
		top := build(t, []proc{
			{external: true},
			{ping: func(*cell) error { pings.Add(1); return topo.Idle }},
		}, []edge{{from: 0, to: 1}}, piper.DrainTimeout(time.Second))
		go func() {
			g := top.externals[0].caller()
			for range messages {
				time.Sleep(250 * time.Millisecond)
				before := pings.Load()
				if err := g.send(t.Context(), 0, 0, message{}); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if pings.Load() != before+1 {
					t.Errorf("after a message Ping was called %d times", pings.Load()-before)
				}
			}
			top.externals[0].Close()
		}()
		ctx, cancel := contextOf(t, 4500*time.Millisecond)
		defer cancel()
		if err := top.run(t, ctx); err != nil {
			t.Fatal(err)
		}
		top.check(t, true)
		// In each period of 250 ms: at 0, 1, 3, 7, 15, 31, 63, 127 and 227 ms.
		if most := int64(9*(messages+1) + 10); pings.Load() > most {
			t.Errorf("Ping was called %d times, want at most %d", pings.Load(), most)
		}
	})
}

func TestDoneEndsPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pings := 0
		top := build(t, []proc{
			{external: true},
			{ping: func(*cell) error {
				pings++
				return fmt.Errorf("end of file: %w", topo.Done)
			}},
		}, []edge{{from: 0, to: 1}})
		go func() {
			g := top.externals[0].caller()
			for range 10 {
				time.Sleep(200 * time.Millisecond)
				if err := g.send(t.Context(), 0, 0, message{}); err != nil {
					t.Error(err)
				}
			}
			top.externals[0].Close()
		}()
		top.runWhole(t)
		if pings != 1 {
			t.Errorf("Ping was called %d times", pings)
		}
	})
}

// TestPingUpToABatch checks that a source that always has messages lets others run
// after each batch.
func TestPingUpToABatch(t *testing.T) {
	const batch = 10
	run, longest, last, done := 0, 0, -1, 0
	busy := func(me int) proc {
		return proc{ping: func(c *cell) error {
			if last != me {
				run, last = 0, me
			}
			run++
			if done == 0 {
				longest = max(longest, run)
			}
			if c.calls == 1000 {
				done++
				return topo.Done
			}
			return nil
		}}
	}
	top := build(t, []proc{busy(0), busy(1)}, nil, piper.Workers(1), piper.Batch(batch))
	top.runWhole(t)
	if longest != batch {
		t.Errorf("%d calls in a row, the batch is %d", longest, batch)
	}
}
