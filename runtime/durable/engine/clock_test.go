package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// jumpingClock is the clock of a computer whose time of day a test sets. It advances with
// the virtual time of synctest.
type jumpingClock struct {
	mu    sync.Mutex
	start time.Time
	shift time.Duration
}

func newJumpingClock() *jumpingClock { return &jumpingClock{start: time.Now()} }

func (c *jumpingClock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.shift)
}

func (c *jumpingClock) Elapsed() time.Duration { return time.Since(c.start) }

func (c *jumpingClock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shift += d
}

// wall returns the time of day that the engine uses, from the record of a new promise.
func wall(t *testing.T, e *engine.Engine, id string) time.Duration {
	t.Helper()
	return time.Duration(do(t, e, create(id), 200).Promise.CreatedAt) * time.Millisecond
}

const day, year = 24 * time.Hour, 365 * 24 * time.Hour

// TestWallClock: the time of day of an engine over jumps of the clock of the computer, and
// over restarts. All times are relative to the start.
func TestWallClock(t *testing.T) {
	for name, steps := range map[string][]struct {
		jump, pass time.Duration
		restart    bool // the jump is while the engine is closed
		want       time.Duration
	}{
		"no jump": {
			{pass: time.Minute, want: time.Minute},
			{restart: true, want: time.Minute},
			{pass: time.Hour, want: time.Minute + time.Hour},
		},
		"forward": {
			{jump: time.Minute, pass: time.Second, want: time.Minute + time.Second},
			{pass: time.Second, want: time.Minute + 2*time.Second},
		},
		"far forward": {
			{jump: time.Hour, pass: 9 * time.Second, want: 9 * time.Second},
			{pass: 2 * time.Second, want: time.Hour + 11*time.Second},
			{pass: time.Second, want: time.Hour + 12*time.Second},
		},
		"far forward for a moment": {
			{jump: 10 * year, pass: 59 * time.Second, want: 59 * time.Second},
			{jump: -10 * year, pass: time.Second, want: 60 * time.Second},
			{restart: true, pass: 9 * time.Second, want: 69 * time.Second},
		},
		"years forward": {
			{jump: 10 * year, pass: 59 * time.Second, want: 59 * time.Second},
			{pass: 2 * time.Second, want: 10*year + 61*time.Second},
		},
		"far forward for two moments": {
			{jump: year, pass: 9 * time.Second, want: 9 * time.Second},
			{jump: -year, pass: 2 * time.Second, want: 11 * time.Second},
			{jump: year, pass: 9 * time.Second, want: 20 * time.Second},
			{jump: -year, pass: 9 * time.Second, want: 29 * time.Second},
		},
		"too far forward, and then corrected": {
			{jump: year, pass: 5 * time.Second, want: 5 * time.Second},
			{jump: time.Hour - year, pass: 9 * time.Second, want: 14 * time.Second},
			{pass: 2 * time.Second, want: time.Hour + 16*time.Second},
		},
		"far forward again and again": {
			{jump: time.Hour, pass: 9 * time.Second, want: 9 * time.Second},
			{jump: time.Hour, pass: 9 * time.Second, want: 18 * time.Second},
			{jump: time.Hour, pass: 9 * time.Second, want: 27 * time.Second},
			{pass: 2 * time.Second, want: 3*time.Hour + 29*time.Second},
		},
		"closed for a minute": {
			{jump: time.Minute, restart: true, want: time.Minute},
		},
		"closed for a week": {
			{jump: 7 * 24 * time.Hour, restart: true, pass: 9 * time.Second, want: 9 * time.Second},
			{pass: 2 * time.Second, want: 7*24*time.Hour + 11*time.Second},
		},
		"seldom open, and never for long": {
			{jump: time.Hour, restart: true, pass: 5 * time.Second, want: 5 * time.Second},
			{jump: time.Hour, restart: true, pass: 5 * time.Second, want: 2*time.Hour + 10*time.Second},
			{jump: time.Hour, restart: true, pass: 5 * time.Second, want: 2*time.Hour + 15*time.Second},
			{jump: time.Hour, restart: true, pass: 5 * time.Second, want: 4*time.Hour + 20*time.Second},
		},
		"ahead at two starts, and right in between": {
			{jump: year, restart: true, pass: 5 * time.Second, want: 5 * time.Second},
			{jump: -year, pass: 5 * time.Second, want: 10 * time.Second},
			{jump: year, restart: true, pass: 5 * time.Second, want: 15 * time.Second},
			{jump: -year, restart: true, pass: 5 * time.Second, want: 20 * time.Second},
			{jump: year, restart: true, pass: 5 * time.Second, want: 25 * time.Second},
		},
		"killed at once again and again": {
			{jump: day, restart: true, pass: 4 * time.Second, want: 4 * time.Second},
			{restart: true, pass: 4 * time.Second, want: 8 * time.Second},
			{restart: true, pass: 4 * time.Second, want: 12 * time.Second},
			{restart: true, pass: time.Second, want: day + 13*time.Second},
		},
		"closed for a year, and killed at once": {
			{jump: year, restart: true, pass: 9 * time.Second, want: 9 * time.Second},
			{restart: true, pass: 59 * time.Second, want: 68 * time.Second},
			{pass: 2 * time.Second, want: year + 70*time.Second},
		},
		"back": { // half speed for twice the jump
			{pass: time.Second, want: time.Second},
			{jump: -time.Minute, pass: 2 * time.Second, want: 2 * time.Second},
			{pass: 118 * time.Second, want: 61 * time.Second},
			{pass: time.Second, want: 62 * time.Second},
		},
		"forward and back": {
			{jump: time.Minute, pass: time.Second, want: 61 * time.Second},
			{jump: -time.Minute, pass: 2 * time.Second, want: 62 * time.Second},
			{pass: 118 * time.Second, want: 121 * time.Second},
			{pass: time.Second, want: 122 * time.Second},
		},
		"back while the engine is closed": {
			{pass: time.Minute, want: time.Minute},
			{jump: -time.Hour, restart: true, want: time.Minute},
			{pass: 10 * time.Second, want: time.Minute + 5*time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := store.NewMemory(), newJumpingClock()
				e := start(t, engine.Config{Store: s, Clock: c, Logger: quiet})
				zero := wall(t, e, "zero")
				for i, step := range steps {
					if step.restart {
						must(t, e.Close(context.Background()))
					}
					c.jump(step.jump)
					if step.restart {
						s = s.Snapshot()
						e = start(t, engine.Config{Store: s, Clock: c, Logger: quiet})
					}
					time.Sleep(step.pass)
					if got := wall(t, e, fmt.Sprint("p", i)) - zero; got != step.want {
						t.Errorf("step %d: %v, want %v", i, got, step.want)
					}
				}
			})
		})
	}
}

// TestDeadlines: a promise times out at its deadline to the millisecond, without a poll.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, engine.Config{Clock: newJumpingClock()})
		c := connect(t, e, "g", "p")
		begin := time.Now()
		for _, ms := range []int64{1, 1234, 999_999, 7_777_777} {
			p := target(fmt.Sprint("p", ms), "poll://any@workers")
			p.TimeoutAt = time.Now().UnixMilli() + ms
			do(t, e, p, 200)
			do(t, e, protocol.RegisterListener{Awaited: p.ID, Address: "poll://any@g"}, 200)
		}
		for _, ms := range []int64{1, 1234, 999_999, 7_777_777} {
			if got := receive(t, c); got != fmt.Sprintf("unblock p%d rejected_timedout", ms) || time.Since(begin).Milliseconds() != ms {
				t.Errorf("%s after %v", got, time.Since(begin))
			}
		}
	})
}

// TestTimeOfAWaitingCall: the time of a call is not before the call, although it joins a
// transaction that has begun earlier. A client that has read that the deadline of a promise
// has passed cannot settle it.
func TestTimeOfAWaitingCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooked{Store: store.NewMemory()}
		e := start(t, engine.Config{Store: h})
		p := create("p", protocol.TagExternal, "true")
		p.TimeoutAt = time.Now().Add(time.Second).UnixMilli()
		do(t, e, p, 200)
		h.set(func() { h.wrap = func(tx store.Tx) store.Tx { return slow{tx, "slow", 2 * time.Second} } })
		first := later(t.Context(), e, create("slow"))
		time.Sleep(1500 * time.Millisecond)
		if r := do(t, e, protocol.PromiseGet{ID: "p"}, 200); r.Promise.State != protocol.RejectedTimeout {
			t.Errorf("after its deadline the promise is %s", r.Promise.State)
		}
		if r := do(t, e, settle("p"), 200); r.Promise.State != protocol.RejectedTimeout {
			t.Errorf("the promise was settled after its deadline: %s", r.Promise.State)
		}
		<-first
	})
}

// TestJumps: a jump forward ends deadlines when it is believed, and no lease. A jump back
// changes nothing that has happened.
func TestJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newJumpingClock()
		s := store.NewMemory()
		e := start(t, engine.Config{Store: s, Clock: clock, Logger: quiet})
		c := connect(t, e, "g", "p")
		deadline := target("deadline", "poll://any@nobody")
		deadline.TimeoutAt = time.Now().Add(time.Hour).UnixMilli()
		do(t, e, deadline, 200)
		do(t, e, protocol.RegisterListener{Awaited: "deadline", Address: "poll://any@g"}, 200)
		do(t, e, target("lease", "poll://any@g"), 200)
		if got := receive(t, c); got != "execute lease 0" {
			t.Fatal(got)
		}
		do(t, e, protocol.TaskAcquire{ID: "lease", PID: "p", TTL: 20_000}, 200)

		clock.jump(2 * time.Hour)
		begin := time.Now()
		if got := receive(t, c); got != "unblock deadline rejected_timedout" || time.Since(begin) > 12*time.Second {
			t.Errorf("%s after %v", got, time.Since(begin))
		}
		if r := do(t, e, protocol.TaskGet{ID: "lease"}, 200); r.Task.State != protocol.TaskAcquired {
			t.Errorf("a jump must not end a lease: %+v", r.Task)
		}
		clock.jump(-3 * time.Hour)
		do(t, e, protocol.TaskHeartbeat{PID: "p", Tasks: []protocol.TaskRef{{ID: "lease", Version: 1}}}, 200)
		time.Sleep(19 * time.Second)
		if r := do(t, e, protocol.TaskGet{ID: "lease"}, 200); r.Task.State != protocol.TaskAcquired {
			t.Errorf("a jump must not end a lease: %+v", r.Task)
		}
		if got := receive(t, c); got != "execute lease 1" || time.Since(begin) > 33*time.Second {
			t.Errorf("the lease ends after its time: %s after %v", got, time.Since(begin))
		}
		if r := do(t, e, protocol.PromiseGet{ID: "deadline"}, 200); r.Promise.State != protocol.RejectedTimeout {
			t.Errorf("a jump back must not undo a timeout: %+v", r.Promise)
		}
		must(t, e.Close(context.Background()))
	})
}

// stoppingClock is the clock of a process that is stopped once when it reads the time of day, which it
// does after it has read the elapsed time.
type stoppingClock struct {
	*jumpingClock
	reads *int // before the stop
}

func (c stoppingClock) Wall() time.Time {
	if *c.reads--; *c.reads == 0 {
		time.Sleep(30 * time.Second)
	}
	return c.jumpingClock.Wall()
}

// TestStopBetweenTwoReadings: a stop of the process does not make the time of day run ahead, so
// no deadline comes early.
func TestStopBetweenTwoReadings(t *testing.T) {
	for reads := range 10 {
		synctest.Test(t, func(t *testing.T) {
			e := start(t, engine.Config{Store: store.NewMemory(), Clock: stoppingClock{newJumpingClock(), &reads}})
			for i := range 10 {
				if ahead := wall(t, e, fmt.Sprint(i)) - time.Duration(time.Now().UnixNano()); ahead > 0 {
					t.Errorf("the time is %v ahead", ahead)
				}
			}
			if reads > 0 {
				t.Errorf("the clock was read %d times less than expected", reads)
			}
		})
	}
}

// brokenClock is the clock of a computer whose time of day is always the same.
type brokenClock struct {
	*jumpingClock
	wall time.Time
}

func (c brokenClock) Wall() time.Time { return c.wall }

// TestBrokenClock: leases end in time whatever the time of day is, and a time of day that
// is out of range is not taken for another one.
func TestBrokenClock(t *testing.T) {
	for name, wall := range map[string]time.Time{
		"before 1970":       time.Date(1940, 1, 1, 0, 0, 0, 0, time.UTC),
		"long before":       time.Unix(-1<<60, 0),
		"after 2262":        time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC),
		"year 292277026596": time.Unix(1<<63-62135596801, 0),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := store.NewMemory()
				e := start(t, engine.Config{Store: s, Clock: brokenClock{newJumpingClock(), wall}})
				c := connect(t, e, "g", "p")
				do(t, e, target("task", "poll://any@g"), 200)
				do(t, e, protocol.TaskAcquire{ID: "task", PID: "p", TTL: 10_000}, 200)
				begin := time.Now()
				for _, want := range []string{"execute task 0", "execute task 1"} {
					if got := receive(t, c); got != want {
						t.Errorf("%s, want %s", got, want)
					}
				}
				if passed := time.Since(begin); passed != 10*time.Second {
					t.Errorf("the lease has ended after %v", passed)
				}
				created := do(t, e, protocol.PromiseGet{ID: "task"}, 200).Promise.CreatedAt
				if future := wall.After(time.Now()); future != (created > time.Now().UnixMilli()) {
					t.Errorf("the promise was created at %d", created)
				}
				check(t, s)
			})
		})
	}
}

// TestDowntime: a lease does not end while the engine is closed, a deadline does.
func TestDowntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := store.NewMemory(), newJumpingClock()
		e := start(t, engine.Config{Store: s, Clock: clock})
		p := protocol.TaskCreate{PID: "p", TTL: 10_000, Action: target("task", "poll://any@g")}
		p.Action.TimeoutAt = time.Now().Add(2 * time.Hour).UnixMilli()
		do(t, e, p, 200)
		time.Sleep(4 * time.Second)
		must(t, e.Close(context.Background()))
		time.Sleep(time.Hour)
		e = start(t, engine.Config{Store: s.Snapshot(), Clock: clock, Logger: quiet})
		c := connect(t, e, "g", "q")
		begin := time.Now()
		if got := receive(t, c); got != "execute task 1" || time.Since(begin) != 6*time.Second {
			t.Errorf("%s after %v", got, time.Since(begin))
		}
	})
}

// TestManyTimeouts: thousands of timeouts in one second do not hold up other callers: a caller
// waits for at most one transaction besides its own, each with at most 1,000 timeouts.
func TestManyTimeouts(t *testing.T) {
	n := speed.Pick(t, 3000, 20_000, 100_000)
	synctest.Test(t, func(t *testing.T) {
		h := &hooked{Store: store.NewMemory()}
		e := start(t, engine.Config{Store: h, Clock: newJumpingClock()})
		deadline := time.Now().Add(time.Minute).UnixMilli()
		var ops []protocol.Operation
		for i := range n {
			p := create(fmt.Sprint("p", i), protocol.TagExternal, "true")
			p.TimeoutAt = deadline + int64(i%1000)
			if ops = append(ops, p); len(ops) == 1000 {
				_, err := e.DoAll(t.Context(), ops)
				must(t, err)
				ops = ops[:0]
			}
		}
		g := newGate(h)
		<-g.arrived // the first timeouts, or a tick without any
		commits, settled := 0, 0
		for ; settled < n; commits++ {
			if commits%20 > 0 {
				g.pass <- struct{}{}
				<-g.arrived
				continue
			}
			settled = countSettled(t, h)
			asked := later(t.Context(), e, create(fmt.Sprint("other", commits)))
			g.pass <- struct{}{}
			<-g.arrived // the next transaction, with the call
			select {
			case <-asked:
				t.Fatal("answered before its commit")
			default:
			}
			g.pass <- struct{}{}
			if o := <-asked; o.err != nil || o.result.Status != 200 {
				t.Fatal(o)
			}
			<-g.arrived
			if more := countSettled(t, h) - settled; more > 2*core.TickLimitDefault {
				t.Fatalf("%d timeouts in two transactions", more)
			}
		}
		g.open()
		t.Logf("%d timeouts in %d transactions, %v after the first deadline", n, commits, time.Duration(time.Now().UnixMilli()-deadline)*time.Millisecond)
	})
}

// countSettled returns the number of promises that are stored as settled.
func countSettled(t *testing.T, s store.Store) (n int) {
	t.Helper()
	must(t, s.View(func(tx store.Tx) error {
		all, timeouts := 0, 0
		for range tx.Ascend(core.Promises, nil) {
			all++
		}
		for range tx.Ascend(core.PromiseTimeouts, nil) {
			timeouts++
		}
		n = all - timeouts
		return nil
	}))
	return n
}
