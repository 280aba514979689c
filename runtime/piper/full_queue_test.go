package piper_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// feed returns a source that sends n messages along an edge, each of them per call of
// Ping.
func feed(edge, n, each int) proc {
	sent := 0
	return proc{name: "feed", ping: func(c *cell) error {
		for range each {
			if sent == n {
				return topo.Done
			}
			sent++
			if err := c.send(edge, 0, message{}); err != nil {
				return err
			}
		}
		return nil
	}}
}

// runWhole runs the topology and checks that no message is left.
func (top *topology) runWhole(t *testing.T) {
	t.Helper()
	if err := top.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
}

func TestBlockPausesTheSender(t *testing.T) {
	for _, capacity := range []int{1, 2, 3, 100} {
		top := build(t, []proc{feed(0, 5000, 1), {}}, []edge{{from: 0, to: 1, capacity: capacity}}, piper.Workers(2))
		top.runWhole(t) // each call of feed checks that the queue has room
	}
}

func TestBlockMayExceedItsCapacityByWhatOneCallSends(t *testing.T) {
	const burst = 1000
	deepest := 0
	sent := 0
	top := build(t, []proc{
		{ping: func(c *cell) error {
			if sent++; sent > 20 {
				return topo.Done
			}
			for range burst {
				if err := c.send(0, 0, message{}); err != nil {
					return err
				}
			}
			deepest = max(deepest, int(c.lane(target{0, 0}).head().Depth()))
			return nil
		}},
		{},
	}, []edge{{from: 0, to: 1, capacity: 10}}, piper.Workers(1))
	top.runWhole(t)
	if deepest < burst || deepest > burst+10/2 {
		t.Errorf("the queue with capacity 10 held %d messages; one call sends %d", deepest, burst)
	}
}

// stall builds feed -> slow, whose receiver handles nothing while it is stalled, and
// makes feed send n messages under the Stepper.
func stall(t *testing.T, n int, e edge) (top *topology, kept func() []uint64) {
	t.Helper()
	e.from, e.to = 0, 1
	var seqs []uint64
	top = build(t, []proc{
		{ping: func(c *cell) error {
			for range n {
				if err := c.send(0, 0, message{}); err != nil && !errors.Is(err, topo.ErrFull) {
					return err
				}
			}
			return topo.Done
		}},
		{receive: func(_ *cell, m *message) error { seqs = append(seqs, m.lane); return nil }},
	}, []edge{e})
	return top, func() []uint64 { return seqs }
}

func TestDropOldestKeepsTheNewest(t *testing.T) {
	top, kept := stall(t, 100, edge{capacity: 5, full: dropOldest})
	if err := top.pool.Stepper(1).Run(); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
	if want := []uint64{96, 97, 98, 99, 100}; !slices.Equal(kept(), want) {
		t.Errorf("kept %v, want %v", kept(), want)
	}
	if e := top.graph().Edge(0); e.Sent() != 100 || e.Dropped() != 95 || e.Received() != 5 || e.Len() != 0 {
		t.Errorf("sent %d, dropped %d, received %d, queued %d; want 100, 95, 5, 0", e.Sent(), e.Dropped(), e.Received(), e.Len())
	}
}

func TestDropNewestKeepsTheOldest(t *testing.T) {
	top, kept := stall(t, 100, edge{capacity: 5, full: dropNewest})
	if err := top.pool.Stepper(1).Run(); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
	if want := []uint64{1, 2, 3, 4, 5}; !slices.Equal(kept(), want) {
		t.Errorf("kept %v, want %v", kept(), want)
	}
}

func TestFailRefusesAndKeepsAll(t *testing.T) {
	top, kept := stall(t, 100, edge{capacity: 5, full: fail})
	if err := top.pool.Stepper(1).Run(); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
	if e := top.graph().Edge(0); len(kept()) != 5 || e.Sent() != 5 || e.Dropped() != 0 {
		t.Errorf("kept %v; sent %d, dropped %d", kept(), e.Sent(), e.Dropped())
	}
}

func TestFailSendsToAllOrNone(t *testing.T) {
	full := 0
	top := build(t, []proc{
		{ping: func(c *cell) error {
			for range 10 {
				err := c.sendAll(message{}, target{0, 0}, target{1, 0})
				if errors.Is(err, topo.ErrFull) {
					full++
				} else if err != nil {
					return err
				}
			}
			return topo.Done
		}},
		{}, {},
	}, []edge{{from: 0, to: 1, capacity: 100, full: dropNewest}, {from: 0, to: 2, capacity: 3, full: fail}})
	if err := top.pool.Stepper(1).Run(); err != nil {
		t.Fatal(err)
	}
	top.check(t, true)
	a, b := top.graph().Edge(0).Sent(), top.graph().Edge(1).Sent()
	if a != 3 || b != 3 || full != 7 {
		t.Errorf("sent %d and %d, refused %d", a, b, full)
	}
}

// TestOnlyBlockPauses has a sender that fills queues that drop or fail while their
// receiver is stuck. The sender must not be paused.
func TestOnlyBlockPauses(t *testing.T) {
	for _, policy := range []full{dropOldest, dropNewest, fail} {
		const calls = 10_000
		called := 0
		done := make(chan struct{})
		top := build(t, []proc{
			{ping: func(c *cell) error {
				if called++; called > calls {
					close(done)
					return topo.Done
				}
				if err := c.send(0, 0, message{}); !errors.Is(err, topo.ErrFull) {
					return err
				}
				return nil
			}},
			{blocking: true, receive: func(*cell, *message) error { <-done; return nil }},
		}, []edge{{from: 0, to: 1, capacity: 3, full: policy}}, piper.Workers(1))
		top.runWhole(t)
	}
}

// TestAFullQueuePausesItsSenderAlone has two pairs of instances. One receiver handles
// nothing until the other has handled all its messages.
func TestAFullQueuePausesItsSenderAlone(t *testing.T) {
	const n = 1000
	got := 0
	done := make(chan struct{})
	top := build(t, []proc{
		{instances: 2, ping: func(c *cell) error {
			if c.calls == n {
				return topo.Done
			}
			return c.send(0, c.number, message{})
		}},
		{instances: 2, blocking: true, receive: func(c *cell, _ *message) error {
			if c.number == 0 {
				<-done
			} else if got++; got == n {
				close(done)
			}
			return nil
		}},
	}, []edge{{from: 0, to: 1, capacity: 2}}, piper.Workers(1))
	top.runWhole(t)
}

// TestReceiveWithinACycleIsNotPaused sends a burst around a cycle of two processors
// whose queues are much smaller. All messages must be handled, and no message may enter
// the cycle in the meantime.
func TestReceiveWithinACycleIsNotPaused(t *testing.T) {
	const burst, rounds = 60, 50
	forward := func(edge int) func(*cell, *message) error {
		return func(c *cell, m *message) error {
			if m.hops == 0 {
				return nil
			}
			return c.send(edge, 0, message{hops: m.hops - 1})
		}
	}
	for _, workers := range []int{1, 2} {
		sent := 0
		top := build(t, []proc{
			{ping: func(c *cell) error {
				if sent++; sent > 20 {
					return topo.Done
				}
				for range burst {
					if err := c.send(0, 0, message{hops: rounds}); err != nil {
						return err
					}
				}
				return nil
			}},
			{receive: forward(1)},
			{receive: forward(2)},
		}, []edge{{from: 0, to: 1, capacity: 4}, {from: 1, to: 2, capacity: 8}, {from: 2, to: 1, capacity: 8}}, piper.Workers(workers))
		top.runWhole(t)
		if got := top.graph().Edge(1).Sent() + top.graph().Edge(2).Sent(); got != 20*burst*rounds {
			t.Errorf("%d messages went around the cycle, want %d", got, 20*burst*rounds)
		}
	}
}

// TestCycleThatGrowsEndsRun has a cycle that makes two messages of each message.
func TestCycleThatGrowsEndsRun(t *testing.T) {
	double := func(edge int) func(*cell, *message) error {
		return func(c *cell, _ *message) error {
			return errors.Join(c.send(edge, 0, message{}), c.send(edge, 0, message{}))
		}
	}
	const capacity, limit = 32, 512
	for _, stepped := range []bool{true, false} {
		top := build(t, []proc{
			feed(0, 1, 1), {name: "left", receive: double(1)}, {name: "right", receive: double(2)},
		}, []edge{{from: 0, to: 1}, {from: 1, to: 2, capacity: capacity}, {from: 2, to: 1, capacity: capacity}}, piper.CycleLimit(limit))
		var err error
		if stepped {
			err = top.pool.Stepper(1).Run()
		} else {
			err = top.run(t, t.Context())
		}
		if !errors.Is(err, piper.ErrCycleGrows) {
			t.Fatalf("Run returns %v", err)
		}
		for _, want := range []string{"left -> right: M1", "right -> left: M2", "the limit is 512"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error must contain %q, got: %v", want, err)
			}
		}
		top.check(t, false)
		held := 0
		for _, f := range top.pool.Snapshot().Edges[1:] {
			held += f.Len
		}
		if held > 2*limit+2*2*256 { // plus the messages that two batches of the default length send
			t.Errorf("Run ended when the cycle held %d messages", held)
		}
	}
}
