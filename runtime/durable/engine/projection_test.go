package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// late returns operations whose answers say that the deadline of promise p or of its task
// has passed. The worker w has the task of p at version 1.
func late() map[string]protocol.Operation {
	call := protocol.RegisterCallback{Awaited: "p", Awaiter: "p:1"}
	creation := protocol.PromiseCreate{ID: "p", TimeoutAt: far, Tags: map[string]string{protocol.TagTarget: "poll://any@g"}}
	return map[string]protocol.Operation{
		"promise.get":               protocol.PromiseGet{ID: "p"},
		"promise.search":            protocol.PromiseSearch{State: protocol.RejectedTimeout},
		"promise.search of pending": protocol.PromiseSearch{State: protocol.Pending, Tags: map[string]string{"which": "p"}},
		"promise.create":            creation,
		"promise.settle":            settle("p"),
		"register_callback":         call,
		"register_listener":         protocol.RegisterListener{Awaited: "p", Address: "poll://any@l"},
		"task.get":                  protocol.TaskGet{ID: "p"},
		"task.search":               protocol.TaskSearch{State: protocol.TaskFulfilled},
		"task.search of acquired":   protocol.TaskSearch{State: protocol.TaskAcquired},
		"task.create":               protocol.TaskCreate{PID: "w", TTL: 1000, Action: creation},
		"task.acquire":              protocol.TaskAcquire{ID: "p", Version: 1, PID: "w", TTL: 1000},
		"task.release":              protocol.TaskRelease{ID: "p", Version: 1},
		"task.fulfill":              protocol.TaskFulfill{ID: "p", Version: 1, Action: settle("p")},
		"task.suspend":              protocol.TaskSuspend{ID: "p", Version: 1, Actions: []protocol.RegisterCallback{{Awaited: "other", Awaiter: "p"}}},
		"task.suspend of another":   protocol.TaskSuspend{ID: "other", Version: 1, Actions: []protocol.RegisterCallback{{Awaited: "p", Awaiter: "other"}}},
		"task.fence":                protocol.TaskFence{ID: "p", Version: 1, Action: create("q")},
		"task.fence with p":         protocol.TaskFence{ID: "other", Version: 1, Action: settle("p")},
		"task.halt":                 protocol.TaskHalt{ID: "p"},
		"task.continue":             protocol.TaskContinue{ID: "p"},
		"preload":                   protocol.TaskAcquire{ID: "p:2", PID: "w", TTL: 1000},
	}
}

// TestAnswersOutliveTheProcess: a client that has learned that a deadline has passed never
// learns the contrary. The process is killed after the answer, before the timeout is
// stored, and the clock of the next one is 5 s behind.
func TestAnswersOutliveTheProcess(t *testing.T) {
	for name, op := range late() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock, s := newJumpingClock(), store.NewMemory()
				config := engine.Config{Store: s, Clock: clock, Logger: quiet, Debug: true}
				e := start(t, config)
				deadline := time.Now().Add(10 * time.Second).UnixMilli()
				for _, id := range []string{"p", "other"} {
					p := target(id, "poll://any@g")
					p.Tags["which"], p.Tags[protocol.TagOrigin], p.Tags[protocol.TagBranch] = id, "p", "p"
					if id == "p" {
						p.TimeoutAt = deadline
					}
					do(t, e, protocol.TaskCreate{PID: "w", TTL: 1e6, Action: p}, 200)
				}
				for _, id := range []string{"p:1", "p:2"} {
					p := target(id, "poll://any@g")
					p.Tags[protocol.TagBranch] = "p"
					do(t, e, p, 200)
				}
				do(t, e, protocol.DebugStart{}, 200) // no tick stores the timeout
				time.Sleep(10 * time.Second)
				_, err := e.Do(t.Context(), op)
				must(t, err)

				clock.jump(-5 * time.Second)
				config.Store = s.Snapshot()
				e = start(t, config)
				do(t, e, protocol.DebugStart{}, 200)
				if r := do(t, e, protocol.PromiseGet{ID: "p"}, 200); r.Promise.State != protocol.RejectedTimeout {
					t.Errorf("after the next start the promise is %s", r.Promise.State)
				}
				if r := do(t, e, settle("p"), 200); r.Promise.State != protocol.RejectedTimeout {
					t.Errorf("after the next start the promise was %s", r.Promise.State)
				}
				check(t, config.Store)
			})
		})
	}
}

// TestReadsThatShowNoDeadlineDoNotWrite: a read commits only if it shows that a deadline has
// passed that is after the time in the store.
func TestReadsThatShowNoDeadlineDoNotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooked{Store: store.NewMemory()}
		e := start(t, engine.Config{Store: h, Clock: newJumpingClock()})
		for i := range 10 {
			p := create(fmt.Sprint("p", i))
			p.TimeoutAt = time.Now().Add(time.Duration(i) * time.Minute).UnixMilli()
			do(t, e, p, 200)
		}
		read := func() {
			for range 5 {
				for i := range 10 {
					do(t, e, protocol.PromiseGet{ID: fmt.Sprint("p", i)}, 200)
				}
				do(t, e, protocol.PromiseSearch{}, 200)
			}
		}
		for minute := range 5 {
			before := h.commits.Load()
			time.Sleep(time.Minute)
			read()
			if n := h.commits.Load() - before; n != 1 {
				t.Errorf("minute %d: the reads have committed %d times, want once for the new deadline", minute, n)
			}
			before = h.commits.Load()
			time.Sleep(time.Second)
			read()
			if n := h.commits.Load() - before; n != 0 {
				t.Errorf("minute %d: the reads have committed %d times, and no deadline has passed", minute, n)
			}
		}
	})
}
