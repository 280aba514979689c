package piper_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// TestIdleDoublesFromOneMillisecondTo100: Ping is called again after 1 ms,
// doubling to 100 ms, and from 1 ms again after it had something to do.
func TestIdleDoublesFromOneMillisecondTo100(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		top := build(t, []proc{{ping: func(*cell) error {
			at = append(at, time.Since(began).Round(time.Millisecond))
			switch len(at) {
			case 11: // busy once, and at once called again
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
			t.Errorf("called at %v, not %v", at, want)
		}
	})
}

// TestIdleEndsWithTheNextMessage lets a message come every 250 ms: Ping is called
// after it, and the wait doubles from 1 ms again. Timers from before a message
// call nothing.
func TestIdleEndsWithTheNextMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages = 16
		var pings atomic.Int64
		top := build(t, []proc{
			{external: true},
			{ping: func(*cell) error { pings.Add(1); return topo.Idle }},
		}, []edge{{from: 0, to: 1}}, piper.DrainTimeout(time.Second))
		go func() {
			g := top.doors[0].guest()
			for range messages {
				time.Sleep(250 * time.Millisecond)
				before := pings.Load()
				if err := g.send(t.Context(), 0, 0, message{}); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if pings.Load() != before+1 {
					t.Errorf("after a message Ping is called %d times", pings.Load()-before)
				}
			}
			top.doors[0].Close()
		}()
		ctx, cancel := contextOf(t, 4500*time.Millisecond)
		defer cancel()
		if err := top.run(t, ctx); err != nil {
			t.Fatal(err)
		}
		top.check(t, true)
		// Each 250 ms: at 0, 1, 3, 7, 15, 31, 63, 127, 227.
		if most := int64(9*(messages+1) + 10); pings.Load() > most {
			t.Errorf("Ping was called %d times, more than %d", pings.Load(), most)
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
				return errors.Join(topo.Done, errors.New("wrapped or not"))
			}},
		}, []edge{{from: 0, to: 1}})
		go func() {
			g := top.doors[0].guest()
			for range 10 {
				time.Sleep(200 * time.Millisecond)
				if err := g.send(t.Context(), 0, 0, message{}); err != nil {
					t.Error(err)
				}
			}
			top.doors[0].Close()
		}()
		top.runWhole(t)
		if pings != 1 {
			t.Errorf("Ping was called %d times", pings)
		}
	})
}

// TestPingUpToABatchThenOthers: a source that always has more leaves room for
// others, batch by batch.
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
