package piper_test

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// TestMessagesUpToABatch has two senders with many messages. The receiver must handle a
// batch of each in turn.
func TestMessagesUpToABatch(t *testing.T) {
	const batch, each = 10, 200
	var got []int
	synctest.Test(t, func(t *testing.T) { // in virtual time, no turn takes long
		top := build(t, []proc{
			{external: true}, {external: true},
			{receive: func(_ *cell, m *message) error { got = append(got, m.edge); return nil }},
		}, []edge{{from: 0, to: 2}, {from: 1, to: 2}}, piper.Workers(1), piper.Batch(batch))
		for edge, d := range top.externals[:2] {
			g := d.caller()
			for range each {
				if err := g.send(t.Context(), edge, 0, message{}); err != nil {
					t.Fatal(err)
				}
			}
			d.Close()
		}
		top.runWhole(t)
	})
	for i := 0; i < len(got); i += batch {
		if turn := got[i : i+batch]; slices.Min(turn) != slices.Max(turn) || i > 0 && turn[0] == got[i-1] {
			t.Fatalf("message %d and the following ones have the edges %v, the previous one has edge %d", i, turn, got[max(0, i-1)])
		}
	}
}

// TestAMessageWakesItsWorkerAtOnce checks that idle workers sleep, and that a message
// is handled before any virtual time passes, from any sender.
func TestAMessageWakesItsWorkerAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled []time.Time
		top := build(t, []proc{
			{external: true},
			{receive: func(c *cell, m *message) error { return c.send(1, 0, *m) }},
			{receive: func(*cell, *message) error { handled = append(handled, time.Now()); return nil }},
		}, []edge{{from: 0, to: 1}, {from: 1, to: 2}}, piper.Workers(2))
		piper.Pin(top.pool, []int{0, 1})
		result := top.start(t.Context())
		g := top.externals[0].caller()
		for i := range 20 {
			time.Sleep(time.Hour) // virtual
			synctest.Wait()
			if !piper.Idle(top.pool) {
				t.Fatal("a worker is awake although there is nothing to do")
			}
			if err := g.send(t.Context(), 0, 0, message{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if len(handled) != i+1 || !handled[i].Equal(time.Now()) {
				t.Fatalf("at %v, after %d messages were sent, the handled ones are %v", time.Now(), i+1, handled)
			}
		}
		top.ends(t, result)
	})
}

// TestThereAreAsManyWorkersAsProcessors checks the default number of workers,
// GOMAXPROCS.
func TestThereAreAsManyWorkersAsProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	if n := workersOf(build(t, []proc{{}}, nil)); n != 3 {
		t.Errorf("%d workers", n)
	}
}

// TestChainsStartTogether checks that instances with the same index start on the same
// worker if messages lead from one to the other, and that chains and indices are
// distributed over the workers.
func TestChainsStartTogether(t *testing.T) {
	procs := []proc{
		{name: "a", instances: 3}, {name: "b", instances: 3}, // a -> b -> c
		{name: "x", instances: 3}, {name: "y", instances: 3}, // x -> y
		{name: "c", instances: 3}, {name: "door", external: true}, // has no edges
	}
	top := build(t, procs, []edge{{from: 0, to: 1}, {from: 1, to: 4}, {from: 2, to: 3}, {from: 5, to: 0}, {from: 5, to: 2}}, piper.Workers(2))
	for i, chain := range map[int]int{0: 0, 1: 0, 4: 0, 2: 1, 3: 1} {
		for number := range 3 {
			if w := top.graph().Processor(i).Worker(number); w != (chain+number)%2 {
				t.Errorf("instance %d of %s starts on worker %d", number, top.name(i), w)
			}
		}
	}
}

// TestBusyIsPingAndReceive checks that Busy includes both.
func TestBusyIsPingAndReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pings, messages, ping, receive = 20, 30, 2 * time.Millisecond, time.Millisecond
		pinged := 0
		top := build(t, []proc{
			feed(0, messages, 1),
			{
				ping: func(*cell) error {
					if pinged == pings {
						return topo.Done
					}
					pinged++
					time.Sleep(ping)
					return nil
				},
				receive: func(*cell, *message) error { time.Sleep(receive); return nil },
			},
		}, []edge{{from: 0, to: 1}}, piper.Workers(1), piper.Batch(1))
		top.runWhole(t)
		if busy := top.graph().Processor(1).Busy(); busy != pings*ping+messages*receive {
			t.Errorf("Busy is %v", busy)
		}
	})
}

// TestWhatIsSentCountsAtBothEnds checks that messages between two instances count for
// the placement of both, although they travel in one direction.
func TestWhatIsSentCountsAtBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top := build(t, []proc{
			feed(0, 200, 1),
			{receive: func(*cell, *message) error { time.Sleep(time.Millisecond); return nil }},
		}, []edge{{from: 0, to: 1, capacity: 2}}, piper.Workers(2), piper.Rebalance(10*time.Millisecond))
		piper.Pin(top.pool, []int{0, 1})
		most := int64(0)
		piper.Measured(top.pool, func(turns []map[int]int64) {
			if turns[0][1] != turns[1][0] {
				t.Errorf("the sender has %d turns, the receiver %d", turns[0][1], turns[1][0])
			}
			most = max(most, turns[1][0])
		})
		top.runWhole(t)
		if most == 0 {
			t.Error("nothing was measured")
		}
	})
}

// TestBusyWorkersYield checks that busy workers yield every 100 µs, and every 20 µs if messages come
// from outside.
func TestBusyWorkersYield(t *testing.T) {
	const messages, receive = 2_000, 10 * time.Microsecond
	handle := func(*cell, *message) error { time.Sleep(receive); return nil }
	for every, procs := range map[time.Duration][]proc{
		100 * time.Microsecond: {feed(0, messages, 1), {receive: handle}},
		20 * time.Microsecond:  {{external: true}, {receive: handle}},
	} {
		synctest.Test(t, func(t *testing.T) {
			top := build(t, procs, []edge{{from: 0, to: 1, capacity: messages}}, piper.Workers(1), piper.Batch(1))
			if procs[0].external {
				g := top.externals[0].caller()
				for range messages {
					if err := g.send(t.Context(), 0, 0, message{}); err != nil {
						t.Fatal(err)
					}
				}
				top.externals[0].Close()
			}
			top.runWhole(t)
			want := uint64(messages * receive / every)
			if yields := piper.Yields(top.pool); yields < want/2 || yields > 2*want {
				t.Errorf("%d yields in %v of work, want about %d", yields, messages*receive, want)
			}
		})
	}
}
