package piper_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// TestIdleLinksAreReleased sends rounds of messages from each of some instances to each of others, with long
// pauses. After a pause there must be no links, and the counts must not have changed.
func TestIdleLinksAreReleased(t *testing.T) {
	const senders, receivers, rounds, pause = 3, 200, 3, 4 * time.Second
	for _, workers := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			var round atomic.Int64
			sent := make([]int, senders)
			top := build(t, []proc{
				{instances: senders, ping: func(c *cell) error {
					n := &sent[c.number]
					switch now := int(round.Load()); {
					case now > rounds:
						return topo.Done
					case *n == now*receivers:
						return topo.Idle
					}
					*n++
					return c.send(0, *n%receivers, message{})
				}},
				{instances: receivers, receive: func(*cell, *message) error { return nil }},
			}, []edge{{from: 0, to: 1}}, piper.Workers(workers))
			result := top.start(t.Context())
			for n := range rounds {
				round.Add(1)
				links := 0
				for range 1000 {
					time.Sleep(pause / 1000)
					links = max(links, piper.InLinks(&top.cells[1][0].Unit))
				}
				if links != senders {
					t.Errorf("%d links led to an instance in round %d, want %d", links, n, senders)
				}
				for i, c := range top.cells[1] {
					if links := piper.InLinks(&c.Unit); links > 0 {
						t.Errorf("%d links lead to instance %d after a pause", links, i)
					}
				}
				edge, want := top.graph().Edge(0), uint64((n+1)*senders*receivers)
				if edge.Sent() != want || edge.Received() != want {
					t.Errorf("sent %d, received %d, want %d", edge.Sent(), edge.Received(), want)
				}
			}
			round.Add(1)
			if err := top.result(t, result); err != nil {
				t.Error(err)
			}
			top.check(t, true)
		})
	}
}

// TestManyIdleLinksAreReleasedEarly makes more links than a worker may list. The first ones must be
// released although the period has not passed.
func TestManyIdleLinksAreReleasedEarly(t *testing.T) {
	const senders, receivers = 40, 2000
	synctest.Test(t, func(t *testing.T) {
		sent, began := make([]int, senders), time.Now()
		top := build(t, []proc{
			{instances: senders, ping: func(c *cell) error {
				switch n := sent[c.number]; {
				case time.Since(began) == 0:
					return topo.Idle // time 0 of the pool means that no time is set
				case n == receivers:
					return topo.Done
				default:
					sent[c.number]++
					return c.send(0, n, message{})
				}
			}},
			{instances: receivers, receive: func(*cell, *message) error { return nil }},
			{ping: func(*cell) error { return topo.Idle }}, // keeps the topology running
		}, []edge{{from: 0, to: 1}}, piper.Workers(1))
		piper.ReleaseAfter(top.pool, time.Hour)
		ctx, stop := context.WithCancel(t.Context())
		result := top.start(ctx)
		time.Sleep(time.Minute)
		links := 0
		for _, c := range top.cells[1] {
			links += piper.InLinks(&c.Unit)
		}
		if links > piper.IdleLinksMax {
			t.Errorf("%d links are kept, want at most %d of %d", links, piper.IdleLinksMax, senders*receivers)
		}
		stop()
		if err := top.result(t, result); err != nil {
			t.Error(err)
		}
		top.check(t, true)
	})
}

// TestSegmentsOfEmptyQueues sends a burst, and after a long pause looks at the queue. Its segments
// must stay while messages come, and must be dropped in the pause. Then nothing wakes the worker.
func TestSegmentsOfEmptyQueues(t *testing.T) {
	const burst = 1000
	synctest.Test(t, func(t *testing.T) {
		var top *topology
		began, calls := time.Now(), 0
		kept := func(want bool) {
			if got := piper.KeepsSegments(&top.cells[1][0].Unit); got != want {
				t.Errorf("after %v the queue keeps segments: %v", time.Since(began), got)
			}
		}
		top = build(t, []proc{
			{ping: func(c *cell) error {
				if calls++; calls > 1 {
					switch d := time.Since(began); {
					case d < time.Millisecond: // the receiver may not have begun
					case d < 4*time.Second: // a flow with short pauses
						kept(true)
					case d < 8*time.Second:
						return topo.Idle
					default:
						kept(false)
						return topo.Done
					}
				}
				for range burst {
					if err := c.send(0, 0, message{}); err != nil {
						return err
					}
				}
				if calls == 1 {
					return nil
				}
				return topo.Idle
			}},
			{receive: func(*cell, *message) error { return nil }},
		}, []edge{{from: 0, to: 1, capacity: 2 * burst}}, piper.Workers(1))
		top.runWhole(t)
	})
}

// TestSegmentsOfASlowInstance sends bursts to an instance that leaves the pool because of a long call, and comes
// back when it is idle. Its queue must not keep the segments of either burst.
func TestSegmentsOfASlowInstance(t *testing.T) {
	const burst = 1000
	for name, long := range map[string]int{"in the first burst": burst - 20, "after the first burst": burst + 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var top *topology
				began, sent, received := time.Now(), 0, 0
				top = build(t, []proc{
					{ping: func(c *cell) error {
						d := time.Since(began)
						if d > 8*time.Second {
							if piper.KeepsSegments(&top.cells[1][0].Unit) {
								t.Error("the queue keeps segments")
							}
							return topo.Done
						}
						for sent < burst || sent == burst && d > 100*time.Millisecond {
							sent++
							if err := c.send(0, 0, message{}); err != nil {
								return err
							}
						}
						return topo.Idle
					}},
					{receive: func(*cell, *message) error {
						if received++; received == long {
							time.Sleep(40 * time.Millisecond)
						}
						return nil
					}},
				}, []edge{{from: 0, to: 1, capacity: 2 * burst}}, piper.Workers(1), new(journal).option())
				top.runWhole(t)
			})
		})
	}
}
