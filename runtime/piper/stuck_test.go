package piper_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

// journal is a log that any goroutine may write.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *journal) count(part string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.buf.String(), part)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func (j *journal) option() piper.Option { return piper.Logger(slog.New(slog.NewTextHandler(j, nil))) }

// TestAStuckHandlerHoldsUpNobodyElse has a handler, on the only worker, that waits for
// events in other instances. The warning that suggests blocking: true must be logged
// once.
func TestAStuckHandlerHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		others := 0
		reached := make(chan struct{})
		top := build(t, []proc{
			feed(0, 3, 1),
			{name: "stuck", receive: func(*cell, *message) error {
				<-reached
				time.Sleep(50 * time.Millisecond) // long enough for the warning
				return nil
			}},
			feed(1, 10_000, 1),
			{receive: func(*cell, *message) error {
				if others++; others == 10_000 {
					close(reached)
				}
				return nil
			}},
		}, []edge{{from: 0, to: 1}, {from: 2, to: 3, capacity: 8}}, piper.Workers(1), log.option())
		top.runWhole(t)
		if n := log.count("blocking: true"); n != 1 || log.count("processor=stuck") != 1 {
			t.Errorf("the warning is logged %d times: %s", n, log.buf.String())
		}
		if w := top.graph().Processor(1).Worker(0); w != -1 {
			t.Errorf("the stuck instance runs on worker %d", w)
		}
	})
}

// TestAHandlerUnder10msIsNotStuck checks that the worker is not taken from a slow
// handler that returns in time.
func TestAHandlerUnder10msIsNotStuck(t *testing.T) {
	for _, workers := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			var log journal
			top := build(t, []proc{
				feed(0, 100, 1),
				{receive: func(*cell, *message) error { time.Sleep(4 * time.Millisecond); return nil }},
			}, []edge{{from: 0, to: 1}}, piper.Workers(workers), log.option())
			top.runWhole(t)
			if log.buf.Len() > 0 {
				t.Errorf("logged: %s", log.buf.String())
			}
		})
	}
}

// TestAHundredBlockedHandlersOnTwoWorkers has a hundred instances that block for 50 ms
// a message, and a hundred others that must not be delayed.
func TestAHundredBlockedHandlersOnTwoWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const instances, slow, quick = 100, 4, 2000
		var log journal
		var ended, quickly atomic.Int64
		began := time.Now()
		send := func(edge, n int, after time.Duration) proc {
			return proc{instances: instances, ping: func(c *cell) error {
				if c.calls == n {
					return topo.Done
				}
				return c.send(edge, c.number, message{})
			}}
		}
		top := build(t, []proc{
			send(0, slow, 0),
			{name: "sleeper", instances: instances, receive: func(*cell, *message) error {
				time.Sleep(50 * time.Millisecond)
				ended.Store(int64(time.Since(began)))
				return nil
			}},
			send(1, quick, 0),
			{instances: instances, receive: func(*cell, *message) error {
				quickly.Store(int64(time.Since(began)))
				return nil
			}},
		}, []edge{{from: 0, to: 1}, {from: 2, to: 3, capacity: 16}}, piper.Workers(2), log.option())
		top.runWhole(t)
		// Virtual time does not advance while a goroutine runs, so it is the time spent
		// waiting. One after the other, the sleepers would take 20 s.
		if d := time.Duration(ended.Load()); d > time.Second {
			t.Errorf("the sleepers took %v", d)
		}
		if d := time.Duration(quickly.Load()); d > 100*time.Millisecond {
			t.Errorf("the others were done after %v", d)
		}
		if n := log.count("blocking: true"); n != 1 {
			t.Errorf("warned %d times", n)
		}
	})
}

// TestBlockingInstancesWaitSideBySide checks that instances with blocking: true have
// their own goroutines from the start, and that no warning is logged.
func TestBlockingInstancesWaitSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const instances = 50
		var log journal
		began := time.Now()
		top := build(t, []proc{
			{instances: instances, ping: func(c *cell) error {
				if c.calls == 3 {
					return topo.Done
				}
				return c.send(0, c.number, message{})
			}},
			{blocking: true, instances: instances, receive: func(*cell, *message) error { time.Sleep(time.Second); return nil }},
		}, []edge{{from: 0, to: 1}}, piper.Workers(1), log.option())
		top.runWhole(t)
		if d := time.Since(began); d > 4*time.Second {
			t.Errorf("it took %v", d)
		}
		if log.buf.Len() > 0 {
			t.Errorf("logged: %s", log.buf.String())
		}
	})
}

// TestAnInstanceComesBack checks that an instance whose handlers are quick again
// returns to a worker.
func TestAnInstanceComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		moves := new(mover)
		handled := 0
		top := build(t, []proc{
			feed(0, 5000, 1),
			{name: "hiccup", receive: func(*cell, *message) error {
				if handled++; handled == 10 {
					time.Sleep(time.Second)
				}
				return nil
			}},
		}, []edge{{from: 0, to: 1, capacity: 4}}, piper.Workers(1), log.option(), piper.Observe(moves))
		top.runWhole(t)
		if w := top.graph().Processor(1).Worker(0); w != 0 {
			t.Errorf("the instance runs on worker %d", w)
		}
		if moves.count("hiccup", -1) != 1 || moves.count("hiccup", 0) != 1 {
			t.Errorf("it moved %v", moves.moves)
		}
	})
}

// TestTwoLongCallsAmongMany has many instances of which two have one long call. Only a limited number of the
// others may leave the pool, and all come back when they are idle. Two rounds of quick calls later only those
// two still leave.
func TestTwoLongCallsAmongMany(t *testing.T) {
	const instances, leaveMax = 3000, 1500
	synctest.Test(t, func(t *testing.T) {
		moves := new(mover)
		sent, before, began := 0, 0, time.Now()
		top := build(t, []proc{
			{name: "feed", ping: func(c *cell) error {
				switch d := time.Since(began); {
				case sent == 4*instances && d >= 10*time.Second && before == 0:
					before = moves.count("node", -1)
					fallthrough
				case sent < 3*instances, sent < 4*instances && d >= 5*time.Second, sent < 5*instances && before > 0:
					sent++
					return c.send(0, sent%instances, message{})
				case d < 20*time.Second:
					return topo.Idle
				}
				if left := moves.count("node", -1) - before; left > 2 {
					t.Errorf("%d instances have left the pool after two rounds of quick calls", left)
				}
				if left, back := moves.count("node", -1), moves.count("node", 0); left < 2 || left > leaveMax || back != left {
					t.Errorf("%d instances of %d have left the pool, %d have come back", left, instances, back)
				}
				if n := strings.Count(stacks(), methods+"Pool).run("); n > 1 {
					t.Errorf("%d goroutines run one worker", n)
				}
				return topo.Done
			}},
			{name: "node", instances: instances, receive: func(c *cell, _ *message) error {
				if c.calls == 1 && c.number < 2 {
					time.Sleep(40 * time.Millisecond)
				}
				return nil
			}},
		}, []edge{{from: 0, to: 1}}, piper.Workers(1), piper.Observe(moves), new(journal).option())
		top.runWhole(t)
	})
}

// TestNoGoroutineStaysForAVisit has an instance that leaves the pool and comes back
// many times. Messages to it must arrive in order.
func TestNoGoroutineStaysForAVisit(t *testing.T) {
	const visits, workers = 6, 2
	synctest.Test(t, func(t *testing.T) {
		moves := new(mover)
		most := 0
		var top *topology
		top = build(t, []proc{
			feed(0, 12_000, 1),
			feed(1, 12_000, 1),
			{external: true},
			{name: "hiccup", receive: func(c *cell, _ *message) error {
				if top.graph().Processor(3).Worker(0) >= 0 && moves.count("hiccup", -1) < visits && c.calls%100 == 99 {
					most = max(most, strings.Count(stacks(), methods+"Pool).run("))
					time.Sleep(50 * time.Millisecond)
				}
				return nil
			}},
		}, []edge{{from: 0, to: 3, capacity: 4}, {from: 1, to: 3, capacity: 64}, {from: 2, to: 3}}, piper.Workers(workers), piper.Observe(moves))
		g := top.externals[2].caller()
		go func() {
			for range 1000 {
				if err := g.send(t.Context(), 2, 0, message{}); err != nil {
					top.violated("a send returns %v", err)
				}
			}
			top.externals[2].x.Close()
		}()
		top.runWhole(t)
		if n := moves.count("hiccup", -1); n != visits {
			t.Errorf("the instance has left the pool %d times", n)
		}
		if most == 0 {
			t.Error("no worker was seen")
		}
		if most > workers+1 { // the last goroutine may be about to end
			t.Errorf("%d goroutines for %d workers, while the instance was in the pool", most, workers)
		}
	})
}

// mover is an Observer that counts moves.
type mover struct {
	mu       sync.Mutex
	moves    map[string][]int // by processor: the workers to which its instances moved
	finished []string
}

func (m *mover) Moved(processor string, _, _, to int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.moves == nil {
		m.moves = make(map[string][]int)
	}
	m.moves[processor] = append(m.moves[processor], to)
}

func (m *mover) Finished(processor string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finished = append(m.finished, processor)
}

func (m *mover) count(processor string, to int) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.moves[processor] {
		if w == to {
			n++
		}
	}
	return n
}

// TestTheObserverHearsWhatHasFinished checks that Finished is called upstream first.
func TestTheObserverHearsWhatHasFinished(t *testing.T) {
	seen := new(mover)
	top := build(t, []proc{feed(0, 3, 1), {name: "a"}, {name: "b"}}, []edge{{from: 0, to: 1}, {from: 1, to: 2}}, piper.Observe(seen))
	top.runWhole(t)
	if got := strings.Join(seen.finished, " "); got != "feed a b" {
		t.Errorf("finished: %s", got)
	}
}

// TestAWaitingWorkerLetsVirtualTimePass has one worker that is busy with handlers that
// sleep, and another one with occasional work.
func TestAWaitingWorkerLetsVirtualTimePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		top := build(t, []proc{
			feed(0, 100, 1),
			{receive: func(*cell, *message) error { time.Sleep(4 * time.Millisecond); return nil }},
			{ping: func(c *cell) error {
				if c.calls == 20 {
					return topo.Done
				}
				return topo.Idle
			}},
		}, []edge{{from: 0, to: 1}}, piper.Workers(2))
		top.runWhole(t)
	})
}

// TestOneThatHangsIsInNoRunQueue has an instance that became ready because a queue to
// itself got room, and that hangs later in the same turn. The worker that it loses must
// not run it.
func TestOneThatHangsIsInNoRunQueue(t *testing.T) {
	const rounds, each = 5, 40 // messages to itself in one call, more than the capacity
	synctest.Test(t, func(t *testing.T) {
		var inside atomic.Int32
		sent, back := 0, 0
		alone := func(handle func() error) error {
			if inside.Add(1) > 1 {
				t.Error("two goroutines run one instance")
			}
			defer inside.Add(-1)
			return handle()
		}
		loop := func(c *cell) error {
			switch {
			case back < sent:
				return nil
			case sent == rounds*each:
				return topo.Done
			case sent > 0:
				time.Sleep(50 * time.Millisecond)
			}
			for range each {
				sent++
				if err := c.send(1, 0, message{}); err != nil {
					return err
				}
			}
			return nil
		}
		moves := new(mover)
		top := build(t, []proc{
			feed(0, 1000, 1),
			{
				name: "loop",
				ping: func(c *cell) error { return alone(func() error { return loop(c) }) },
				receive: func(_ *cell, m *message) error {
					return alone(func() error { back += m.edge; return nil }) // edge 1 leads back
				},
			},
		}, []edge{{from: 0, to: 1, capacity: 8}, {from: 1, to: 1, capacity: 8}}, piper.Workers(1), piper.Observe(moves))
		top.runWhole(t)
		if moves.count("loop", -1) == 0 {
			t.Error("the instance has not lost its worker")
		}
	})
}

// TestMessagesDoNotWaitForLongCalls has calls that send a message and then take long. Each message must
// arrive soon: that of a later long call, which runs outside the pool, and that of a call which is long
// already.
func TestMessagesDoNotWaitForLongCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = 300 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		var sent atomic.Int64 // when the last message was sent, since began
		var delays []time.Duration
		top := build(t, []proc{
			{tick: func(c *cell, _ topo.Tick) error {
				if c.calls%5 > 0 {
					return nil
				}
				for range 2 {
					sent.Store(int64(time.Since(began)))
					if err := c.send(1, 0, message{}); err != nil {
						return err
					}
					time.Sleep(long)
				}
				return nil
			}},
			{receive: func(*cell, *message) error {
				delays = append(delays, time.Since(began)-time.Duration(sent.Load()))
				return nil
			}},
		}, []edge{{from: timer, to: 0, every: 50 * time.Millisecond}, {from: 0, to: 1}})
		if err := top.run(t, ctx); err != nil {
			t.Error(err)
		}
		if len(delays) < 6 || slices.Max(delays) > 15*time.Millisecond {
			t.Errorf("the messages arrive after %v", delays)
		}
	})
}

// TestTheLastFailureIsLoggedSoon has three failures within a second, and none after that. The last one must
// be logged when the second has passed, and not at the end of Run.
func TestTheLastFailureIsLoggedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		top := build(t, []proc{{watch: &piper.Watch{Then: piper.ThenSkip, Attempts: 1}, tick: func(_ *cell, tick topo.Tick) error {
			if tick.N <= 3 {
				return errFailed
			}
			return nil
		}}}, []edge{{from: timer, to: 0, every: 100 * time.Millisecond}}, log.option())
		var logged atomic.Int64
		time.AfterFunc(1200*time.Millisecond, func() { logged.Store(int64(log.count("times=2"))) })
		if err := top.run(t, ctx); err != nil {
			t.Error(err)
		}
		if n := log.count("times=2"); n != 1 || logged.Load() != 1 {
			t.Errorf("the last failure is logged %d times after a second, and %d times in all: %s", logged.Load(), n, log.buf.String())
		}
	})
}

// TestLinesAreASecondApart has a failure every 10 ms: one is logged, with the number of the others, just
// when the timer for the last of them fires.
func TestLinesAreASecondApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		top := build(t, []proc{{watch: &piper.Watch{Then: piper.ThenSkip, Attempts: 1}, tick: func(*cell, topo.Tick) error { return errFailed }}},
			[]edge{{from: timer, to: 0, every: 10 * time.Millisecond}}, log.option())
		if err := top.run(t, ctx); err != nil {
			t.Error(err)
		}
		if n := log.count("a handler has failed"); n > 21 { // and one at the end of Run
			t.Errorf("%d lines are logged in 20 s: %s", n, log.buf.String())
		}
	})
}

// TestEachKindOfLineHasItsOwnLimit has two processors that fail in several ways at the same times. The first line of each
// kind and processor is logged at once, and the others with their number a second later.
func TestEachKindOfLineHasItsOwnLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var procs []proc
		var children []supervise.Processor
		for _, name := range []string{"a", "b"} {
			procs = append(procs, proc{
				name: name, watch: &piper.Watch{Then: piper.ThenSkip, Attempts: 1},
				tick: func(_ *cell, tick topo.Tick) error {
					switch {
					case tick.N > 8:
						return nil
					case tick.N%2 == 0:
						panic(errFailed)
					}
					return errFailed
				},
				make: func(_ *cell, n int) error {
					if n%2 == 1 {
						return errFailed
					}
					return nil
				},
				close: func(*cell) error { return errFailed },
			})
			children = append(children, supervise.Processor{Name: name, Instances: 1, Supervised: true, Policy: supervise.OnFailure, Delay: 10 * time.Millisecond, MaxDelay: 10 * time.Millisecond})
		}
		top, err := constructWith(supervise.New(supervise.Spec{Processors: children}), procs,
			[]edge{{from: timer, to: 0, every: 100 * time.Millisecond}, {from: timer, to: 1, every: 100 * time.Millisecond}}, log.option())
		if err != nil {
			t.Fatal(err)
		}
		early := make(chan string, 1)
		time.AfterFunc(450*time.Millisecond, func() { early <- log.text() }) // after two failures of each kind
		if err := top.run(t, ctx); !errors.Is(err, errFailed) {              // of Close at the end
			t.Error(err)
		}
		soon := <-early
		for _, kind := range []string{"a handler has failed", "an instance has failed", "an instance cannot be restarted", "Close failed for an instance that has ended"} {
			for _, name := range []string{"a", "b"} {
				line := regexp.MustCompile(`topogen: ` + kind + `" processor=` + name + ` .*`)
				if n := len(line.FindAllString(soon, -1)); n != 1 {
					t.Errorf("%s of %s: %d lines are logged at once: %s", kind, name, n, soon)
				}
				lines := line.FindAllString(log.text(), -1)
				if len(lines) != 2 || strings.Contains(lines[0], "times=") || !strings.HasSuffix(lines[1], " times=3") {
					t.Errorf("%s of %s: the lines are %q", kind, name, lines)
				}
			}
		}
	})
}

type badText struct{}

func (badText) Error() string { panic("no text") }

// TestAnErrorWithoutAText checks that an error whose method Error panics fails only its message.
func TestAnErrorWithoutAText(t *testing.T) {
	top := build(t, []proc{feed(0, 5, 1), {watch: &piper.Watch{Then: piper.ThenSkip, Attempts: 1}, receive: func(*cell, *message) error { return badText{} }}},
		[]edge{{from: 0, to: 1}})
	if err := top.run(t, t.Context()); err != nil {
		t.Error(err)
	}
	if f := top.pool.Snapshot().Faults; f.Dropped != 5 {
		t.Errorf("%+v, want 5 dropped messages", f)
	}
}
