package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// limitHeld returns how many messages wait in memory for a worker of a group: 10,000 as usual in a
// long run, and fewer in the others.
func limitHeld(t *testing.T, e *engine.Engine) (heldMax int) {
	heldMax = speed.Pick(t, 200, 2000, 10_000)
	if heldMax < 10_000 {
		e.SetHeldMax(heldMax, 10*heldMax)
	}
	return heldMax
}

// createTasks creates tasks for an address, t0 and so on.
func createTasks(t *testing.T, e *engine.Engine, address string, n int) {
	t.Helper()
	var ops []protocol.Operation
	for i := range n {
		if ops = append(ops, target(fmt.Sprint("t", i), address)); len(ops) == 1000 || i == n-1 {
			_, err := e.DoAll(t.Context(), ops)
			must(t, err)
			ops = nil
		}
	}
}

// TestRetriesWithoutWorker: tasks for which there is no worker cost nothing while they
// wait, whether their messages are in memory or had no place there. A worker that connects
// later gets all of them.
func TestRetriesWithoutWorker(t *testing.T) {
	for _, address := range []string{"poll://any@g", "poll://any@g/p", "poll://uni@g/p"} {
		t.Run(address, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &hooked{Store: store.NewMemory()}
				e := start(t, engine.Config{Store: s})
				heldMax := limitHeld(t, e)
				n := heldMax + heldMax/4
				createTasks(t, e, address, n)
				time.Sleep(time.Minute)
				commits, ticks := s.commits.Load(), e.Stats().Ticks
				hours := speed.Pick(t, 1, 6, 24)
				time.Sleep(time.Duration(hours) * time.Hour)
				if c := s.commits.Load() - commits; c > 0 {
					t.Errorf("%d commits in %d hours without a worker", c, hours)
				}
				if got := e.Stats().Ticks - ticks; got > uint64(hours)*3600+10 { // the clock is looked at each second
					t.Errorf("%d ticks in %d hours without a worker", got, hours)
				}
				begin, ids := time.Now(), map[string]bool{}
				c := connect(t, e, "g", "p")
				for len(ids) < n {
					m := <-c.Messages()
					if !ids[m.Execute.ID] {
						do(t, e, protocol.TaskAcquire{ID: m.Execute.ID, PID: "p", TTL: 1e12}, 200)
					}
					ids[m.Execute.ID] = true
				}
				if passed := time.Since(begin); passed > 31*time.Second {
					t.Errorf("the worker has all tasks after %v", passed)
				}
				check(t, s)
			})
		})
	}
}

// TestRetryAfterLostMessage: a worker takes a message that had waited, and ends without
// acquiring the task. The next worker gets the message within twice the retry timeout.
func TestRetryAfterLostMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, engine.Config{})
		do(t, e, target("job", "poll://any@g"), 200)
		time.Sleep(time.Hour)
		for i := range 3 {
			c := connect(t, e, "g", fmt.Sprint(i))
			begin := time.Now()
			if got := receive(t, c); got != "execute job 0" || time.Since(begin) > time.Minute {
				t.Errorf("%s after %v", got, time.Since(begin))
			}
			c.Close()
		}
	})
}

// TestRetryTimesWithWorker: a worker that acquires nothing gets the message again after
// each retry timeout.
func TestRetryTimesWithWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, engine.Config{})
		c := connect(t, e, "g", "p")
		begin := time.Now()
		do(t, e, target("job", "poll://any@g"), 200)
		for i := range 5 {
			if got := receive(t, c); got != "execute job 0" || time.Since(begin) != time.Duration(i)*30*time.Second {
				t.Errorf("%s after %v", got, time.Since(begin))
			}
		}
	})
}

// TestLeasesAmongRetries: retries that are left out do not hold up leases that end, or
// deadlines, before and after a restart.
func TestLeasesAmongRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		e := start(t, engine.Config{Store: s})
		createTasks(t, e, "poll://any@nobody", 3000)
		lease := protocol.TaskCreate{PID: "w", TTL: 45_000, Action: target("leased", "poll://any@g")}
		do(t, e, lease, 200)
		short := target("short", "poll://any@nobody")
		short.TimeoutAt = time.Now().Add(50 * time.Second).UnixMilli()
		do(t, e, short, 200)
		do(t, e, protocol.RegisterListener{Awaited: "short", Address: "poll://any@g"}, 200)
		time.Sleep(40 * time.Second)
		must(t, e.Close(context.Background()))
		s = s.Snapshot()
		e = start(t, engine.Config{Store: s})
		c := connect(t, e, "g", "p")
		expect(t, c)
		time.Sleep(11 * time.Second)
		expect(t, c, "execute leased 1", "unblock short rejected_timedout")
		check(t, s)
	})
}

// TestRetriesOfFailingReceiver: tasks for a URL that does not answer are not written again
// with every retry.
func TestRetriesOfFailingReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := speed.Pick(t, 1000, 1000, 5000)
		s := &hooked{Store: store.NewMemory()}
		r := newReceivers(func(string) (int, time.Duration) { return 500, 0 })
		e := start(t, engine.Config{Store: s, Push: r, Logger: quiet})
		createTasks(t, e, "http://down", n)
		time.Sleep(time.Minute)
		commits, offered := s.commits.Load(), e.Stats().Executes
		time.Sleep(time.Hour)
		if c := s.commits.Load() - commits; c > 200 {
			t.Errorf("%d commits in an hour", c)
		}
		if got := e.Stats().Executes - offered; got < 50 || got > 200 {
			t.Errorf("%d messages in an hour", got)
		}
	})
}
