package piper_test

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// chain is a source followed by stages, each of which takes some virtual time for a
// message.
type chain struct {
	work     func(stage int, m *message) time.Duration
	stages   int
	messages int
	from     int // first message of the measurement
}

// run returns how long the last messages take if instances start on the given workers.
func (c chain) run(t *testing.T, at []int, rebalance time.Duration) (took time.Duration) {
	const capacity = 64
	var warm time.Time
	procs := []proc{{ping: func(s *cell) error {
		state, _ := s.state.(int)
		s.state = state + 1
		if state == c.messages {
			return topo.Done
		}
		return s.send(0, 0, message{hops: state})
	}}}
	var edges []edge
	for i := range c.stages {
		last := i == c.stages-1
		procs = append(procs, proc{receive: func(s *cell, m *message) error {
			if d := c.work(i, m); d > 0 {
				time.Sleep(d)
			}
			if last {
				if m.hops == c.from {
					warm = time.Now()
				}
				return nil
			}
			return s.send(i+1, 0, *m)
		}})
		edges = append(edges, edge{from: i, to: i + 1, capacity: capacity})
	}
	synctest.Test(t, func(t *testing.T) {
		top := build(t, procs, edges, piper.Workers(2), piper.Rebalance(rebalance), piper.Batch(16), piper.Logger(slog.New(slog.DiscardHandler)))
		piper.Pin(top.pool, at)
		if err := top.run(t, t.Context()); err != nil {
			t.Fatal(err)
		}
		top.check(t, true)
		took = time.Since(warm)
	})
	return took
}

// best is the time that the best of all placements on two workers takes.
func (c chain) best(t *testing.T) (least, most time.Duration, worst []int) {
	n := c.stages + 1
	for bits := range 1 << (n - 1) { // the workers are equal
		at := make([]int, n)
		for i := range at {
			at[i] = bits >> i & 1
		}
		took := c.run(t, at, 0)
		if least == 0 || took < least {
			least = took
		}
		if took > most {
			most, worst = took, at
		}
	}
	return least, most, worst
}

// TestRebalancingFindsAGoodPlacement starts with the worst placement. The rebalancer
// must find a placement with nearly the throughput of the best one, whether one stage
// is too heavy or all stages differ.
func TestRebalancingFindsAGoodPlacement(t *testing.T) {
	speed.NoRace(t)
	speed.Landing(t) // it runs all placements
	for name, costs := range map[string][]time.Duration{
		"skewed": {100, 1000, 100, 100},
		"unlike": {300, 500, 200, 400, 600},
		"alike":  {200, 200, 200, 200},
	} {
		t.Run(name, func(t *testing.T) {
			c := chain{
				stages: len(costs), messages: 2000, from: 500, // after three decisions
				work: func(stage int, _ *message) time.Duration { return costs[stage] * time.Microsecond },
			}
			least, most, worst := c.best(t)
			took := c.run(t, worst, 150*time.Millisecond)
			t.Logf("best %v, worst %v, rebalanced %v: %.2f of the best", least, most, took, float64(least)/float64(took))
			if float64(took) > float64(least)/0.85 {
				t.Errorf("the run takes %v, with the best placement %v", took, least)
			}
		})
	}
}

// TestRebalancingFollowsTheLoad checks that a load in the distant past does not count.
func TestRebalancingFollowsTheLoad(t *testing.T) {
	c := chain{stages: 3, messages: 4000, from: 3300, work: func(stage int, m *message) time.Duration {
		heavy := 0
		if m.hops > 3000 {
			heavy = 2
		}
		if stage == heavy {
			return time.Millisecond
		}
		return 500 * time.Microsecond
	}}
	good := c.run(t, []int{0, 0, 0, 1}, 0) // the best placement for the later load
	took := c.run(t, []int{0, 0, 0, 0}, 50*time.Millisecond)
	t.Logf("%v, at best %v", took, good)
	if float64(took) > float64(good)/0.85 {
		t.Errorf("the run takes %v, with the best placement %v", took, good)
	}
}

// TestRandomMoves runs large random topologies on real workers while all instances are
// moved at random, and prints how often each kind of event occurred.
func TestRandomMoves(t *testing.T) {
	from, to := speed.Seeds(t, 5, 8, 10_000)
	seen := make(coverage)
	for _, workers := range []int{2, 4} {
		t.Run(strconv.Itoa(workers), func(t *testing.T) {
			for seed := from; seed < to; seed++ {
				x := drawLarge(seed)
				x.shuffle = rand.New(rand.NewPCG(seed, 7))
				moves := new(mover)
				every := []time.Duration{100 * time.Microsecond, time.Millisecond}[seed%2]
				x.opts = append(x.opts, piper.Rebalance(every), piper.Observe(moves))
				runSeed(t, x, seed, workers)
				seen.add(x, moves)
			}
		})
	}
	seen.report(t, uint64(to-from))
}

// coverage counts the events in runs of random topologies.
type coverage map[string]uint64

func (c coverage) add(x *random, moves *mover) {
	c["ended "+[]string{"with all work done", "by the context", "by an error", "by a panic", "by a panic with an error", "by Goexit"}[x.ending]]++
	for _, to := range moves.moves {
		for _, w := range to {
			if w >= 0 {
				c["moved to a worker"]++
			} else {
				c["moved to a goroutine of its own"]++
			}
		}
	}
	c["finished"] += uint64(len(moves.finished))
	s := x.top.pool.Snapshot()
	for i, e := range s.Edges {
		kind := []string{"block", "drop-oldest", "drop-newest", "fail"}[x.edges[i].full]
		if x.edges[i].from == timer {
			kind = "a timer"
		} else if x.top.group[x.edges[i].from] == x.top.group[x.edges[i].to] {
			kind += ", in a cycle"
		}
		c["sent along "+kind] += e.Sent
		c["dropped by "+kind] += e.Dropped
		c["sent"] += e.Sent
	}
	for i, p := range s.Processors {
		for _, f := range p.Instances {
			if f.Paused > 0 {
				c["paused"]++
			}
			if x.procs[i].blocking {
				c["handled by a blocking instance"] += f.Received
			}
		}
		if x.procs[i].serve != nil {
			c["served"]++
		}
	}
}

// report prints the counts, and fails if a kind of event rarely occurred.
func (c coverage) report(t *testing.T, seeds uint64) {
	for _, what := range slices.Sorted(maps.Keys(c)) {
		t.Logf("%10d %s", c[what], what)
	}
	if seeds < 5000 {
		if c["moved to a worker"] < seeds {
			t.Error("hardly anything has moved")
		}
		return
	}
	never := []string{"dropped by block", "dropped by block, in a cycle", "dropped by fail", "dropped by fail, in a cycle"}
	for what, n := range c {
		if n < 100 && !slices.Contains(never, what) && what != "moved to a goroutine of its own" { // TestRandomNaps covers these
			t.Errorf("%s: %d times", what, n)
		}
	}
	if c["sent"] < largeSent*seeds {
		t.Errorf("%d messages were sent with %d seeds", c["sent"], seeds)
	}
}

// TestOrderWhileMoving checks that messages from one instance to another along three
// edges arrive in the order in which they were sent, while both instances are moved at
// random.
func TestOrderWhileMoving(t *testing.T) {
	const begin, data, end = 0, 1, 2
	const rounds = 2000
	open := false
	top := build(t, []proc{
		{ping: func(c *cell) error {
			n, _ := c.state.(int)
			if n == rounds {
				return topo.Done
			}
			c.state = n + 1
			for i := range 2 + n%7 {
				if err := c.send(min(i, data), 0, message{}); err != nil {
					return err
				}
			}
			return c.send(end, 0, message{})
		}},
		{receive: func(c *cell, m *message) error {
			if open == (m.edge == begin) {
				c.violated("a message of edge %d was handled while open is %v", m.edge, open)
			}
			open = m.edge != end
			return nil
		}},
	}, []edge{{from: 0, to: 1, capacity: 16}, {from: 0, to: 1, capacity: 7}, {from: 0, to: 1}},
		piper.Workers(3), piper.Rebalance(100*time.Microsecond))
	n := 0
	piper.PlaceBy(top.pool, func(workers int, at []int) []int {
		n++
		return []int{n % workers, n / 2 % workers}
	})
	top.runWhole(t)
}

// TestASnapshotShowsInstances checks the times Busy and Paused, in virtual time, and
// the counts.
func TestASnapshotShowsInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages, each = 200, time.Millisecond
		top := build(t, []proc{
			feed(0, messages, 1),
			{receive: func(*cell, *message) error { time.Sleep(each); return nil }},
		}, []edge{{from: 0, to: 1, capacity: 4}}, piper.Workers(1))
		top.runWhole(t)
		s := top.pool.Snapshot()
		source, sink := s.Processors[0].Instances[0], s.Processors[1].Instances[0]
		if sink.Busy != messages*each || sink.Received != messages || sink.Len != 0 || sink.Moves != 0 || sink.Worker != 0 {
			t.Errorf("the receiver: %+v", sink)
		}
		if source.Paused < s.Elapsed*8/10 || source.Paused > s.Elapsed || source.Busy > s.Elapsed/10 {
			t.Errorf("the sender: %+v in %v", source, s.Elapsed)
		}
	})
}

// TestMovesAreLogged checks the log at level debug, which has the cost of each
// processor.
func TestMovesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		work := func(name string, d time.Duration) proc {
			return proc{name: name, receive: func(*cell, *message) error { time.Sleep(d); return nil }}
		}
		top := build(t, []proc{{external: true}, feed(1, 2000, 1), work("light", 20*time.Microsecond), feed(2, 2000, 1), work("heavy", 40*time.Microsecond)},
			[]edge{{from: 0, to: 2}, {from: 1, to: 2, capacity: 64}, {from: 3, to: 4, capacity: 64}},
			piper.Workers(2), piper.Rebalance(5*time.Millisecond), piper.Batch(16), piper.Logger(logger))
		top.externals[0].Close()
		piper.Pin(top.pool, []int{0, 0, 0, 0})
		top.runWhole(t)
		line := regexp.MustCompile(`level=DEBUG msg="topogen: instances move to other workers" moves=[12] window=(\S+) ` +
			`heaviest_before=(\S+) heaviest_after=(\S+) costs.feed=0s costs.light=(\S+) costs.feed=0s costs.heavy=(\S+)\n`)
		found := line.FindStringSubmatch(log.buf.String())
		if found == nil {
			t.Fatalf("logged: %s", log.buf.String())
		}
		var d [5]time.Duration
		for i := range d {
			var err error
			if d[i], err = time.ParseDuration(found[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		window, before, after, light, heavy := d[0], d[1], d[2], d[3], d[4]
		if before != light+heavy || after != heavy || before > window || light < window/5 || heavy < window/2 {
			t.Errorf("the figures are wrong: %s", found[0])
		}
	})
}

// TestADecisionStallsNobody delays a decision with a long handler on one worker. The
// other worker must go on at once, and a move must not stop other instances.
func TestADecisionStallsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every, ticks = time.Millisecond, 200
		began := time.Now()
		moves := new(mover)
		ctx, stop := context.WithCancel(t.Context())
		top := build(t, []proc{
			{name: "slow", tick: func(*cell, topo.Tick) error { time.Sleep(8 * time.Millisecond); return nil }},
			{name: "punctual", tick: func(c *cell, k topo.Tick) error {
				if late := time.Since(began) - time.Duration(k.N)*every; late != 0 {
					c.violated("tick %d comes %v late", k.N, late)
				}
				if k.N == ticks {
					stop()
				}
				return nil
			}},
			{name: "mobile", tick: func(*cell, topo.Tick) error { return nil }},
		}, []edge{{from: timer, to: 0, every: 10 * every}, {from: timer, to: 1, every: every}, {from: timer, to: 2, every: every}},
			piper.Workers(2), piper.Rebalance(every), piper.Observe(moves))
		piper.Pin(top.pool, []int{0, 1, 0})
		turn := 0
		piper.PlaceBy(top.pool, func(_ int, at []int) []int {
			turn++
			return []int{0, 1, turn % 2}
		})
		if err := top.run(t, ctx); err != nil {
			t.Fatal(err)
		}
		top.check(t, true)
		if n := moves.count("mobile", 0) + moves.count("mobile", 1); n < 10 {
			t.Errorf("the instance moved %d times", n)
		}
	})
}

// TestBusyOfABlockingInstanceIsExact has an instance that is blocking and of whose
// calls only a few take long.
func TestBusyOfABlockingInstanceIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handled := 0
		top := build(t, []proc{
			feed(0, 200, 1),
			{blocking: true, receive: func(*cell, *message) error {
				if handled++; handled%50 == 0 {
					time.Sleep(100 * time.Millisecond)
				}
				return nil
			}},
		}, []edge{{from: 0, to: 1, capacity: 4}}, piper.Workers(1))
		top.runWhole(t)
		if busy := top.pool.Snapshot().Processors[1].Instances[0].Busy; busy != 400*time.Millisecond {
			t.Errorf("Busy is %v", busy)
		}
	})
}
