package core_test

import (
	"testing"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// The tests of this file fail for bugs that implementations of the protocol had. They are
// recorded in spec/implementation-questions.md of the formal specification; the names in
// parentheses are those of its questions. docs/reference has a table of them.

// An awaited promise without a target had no timeout entry, so its awaiter was never
// resumed (C1, under-arming).
func TestKnownBugUntargetedPromiseNeverExpires(t *testing.T) {
	for name, tag := range map[string]map[string]string{
		"external": external(),
		"timer":    tags(protocol.TagTimer, "true"),
		"global":   tags(protocol.TagScope, "global"),
	} {
		t.Run(name, func(t *testing.T) {
			w := defaults(t).at(1000)
			w.create("flow", 90_000, targeted())
			w.create("awaited", 5000, tag)
			w.acquire("flow", 0)
			w.suspend("flow", 1, "awaited")
			w.at(5000)
			w.sends(w.tick(), "execute flow v1")
			w.isTask("flow", protocol.TaskPending, 1)
		})
	}
}

// Every promise had a timeout entry, also those for which no program can wait (C1,
// over-arming).
func TestKnownBugInternalPromiseHasTimeout(t *testing.T) {
	w := defaults(t).at(1000)
	w.create("internal", 5000, nil)
	if _, ok := core.Next(w.kv, w.now); ok {
		t.Error("an internal promise has a timeout entry")
	}
	w.at(5000)
	if p := w.promise("internal"); p.State != protocol.RejectedTimeout || *p.SettledAt != 5000 {
		t.Errorf("the internal promise is %s", p.State)
	}
}

// A callback or a listener on an internal promise was accepted, and never served (C2, C3).
func TestKnownBugInternalPromiseIsAwaited(t *testing.T) {
	w := defaults(t).at(1000)
	w.create("a", 90_000, targeted())
	w.create("a:1", 5000, nil)
	w.acquire("a", 0)
	w.refused(protocol.RegisterCallback{Awaited: "a:1", Awaiter: "a"}, 422)
	w.refused(protocol.RegisterListener{Awaited: "a:1", Address: worker}, 422)
	w.refused(protocol.TaskSuspend{ID: "a", Version: 1, Actions: []protocol.RegisterCallback{{Awaited: "a:1", Awaiter: "a"}}}, 422)
}

// task.create gave out a lease on a task whose promise had passed its deadline (C4).
func TestKnownBugTaskCreateLeasesDeadPromise(t *testing.T) {
	w := defaults(t).at(1000)
	w.create("p", 5000, targeted())
	w.at(5000)
	op := protocol.TaskCreate{PID: "w1", TTL: 1000, Action: protocol.PromiseCreate{ID: "p", TimeoutAt: 5000, Tags: targeted()}}
	r, _ := w.must(op)
	if r.Task.State != protocol.TaskFulfilled || r.Task.Version != 0 || r.Task.PID != nil {
		t.Errorf("the task is %+v", *r.Task)
	}
	if r.Promise.State != protocol.RejectedTimeout {
		t.Errorf("the promise is %s", r.Promise.State)
	}
	w.refused(protocol.TaskAcquire{ID: "p", PID: "w1", TTL: 1000}, 409)
}

// task.halt returned 200 for a task that task.get showed as fulfilled (C4).
func TestKnownBugHaltOfDeadTask(t *testing.T) {
	w := defaults(t).at(1000)
	w.create("p", 5000, targeted())
	w.at(5000)
	w.isTask("p", protocol.TaskFulfilled, 0)
	w.refused(protocol.TaskHalt{ID: "p"}, 409)
}

// task.continue offered a halted task whose promise had passed its deadline (C4).
func TestKnownBugContinueOfDeadTask(t *testing.T) {
	w := defaults(t).at(1000)
	w.create("p", 5000, targeted())
	w.must(protocol.TaskHalt{ID: "p"})
	w.at(5000)
	w.refused(protocol.TaskContinue{ID: "p"}, 409)
	w.sends(w.tick(), "")
}

// The end of a lease and a retry offered a task whose promise had passed its deadline, when
// they were processed before the promise (C5).
func TestKnownBugDeadTaskIsOfferedAgain(t *testing.T) {
	for limit := range 5 {
		w := defaults(t).at(1000)
		w.create("leased", 40_000, targeted())
		w.create("pending", 40_000, targeted())
		w.create("delayed", 40_000, tags(protocol.TagTarget, worker, protocol.TagDelay, "39000"))
		w.acquire("leased", 0)
		w.at(40_000)
		for more := true; more; {
			r, sent := w.must(core.Tick{Limit: limit})
			w.sends(sent, "")
			more = r.More
		}
		w.isTask("leased", protocol.TaskFulfilled, 1)
		w.isTask("pending", protocol.TaskFulfilled, 0)
		w.isTask("delayed", protocol.TaskFulfilled, 0)
	}
}

// A task was resumed although its own deadline had passed (C6). All implementations had
// this bug.
func TestKnownBugDeadAwaiterIsResumed(t *testing.T) {
	t.Run("settle", func(t *testing.T) {
		w := deadAwaiter(t).at(6000)
		_, sent := w.must(settle("awaited"))
		w.sends(sent, "")
		w.isTask("flow", protocol.TaskFulfilled, 1)
		w.sends(w.tick(), "")
	})
	t.Run("tick", func(t *testing.T) {
		w := deadAwaiter(t).at(9000)
		w.sends(w.tick(), "")
		w.isTask("flow", protocol.TaskFulfilled, 1)
	})
	t.Run("one at a time", func(t *testing.T) {
		w := defaults(t).at(1000)
		w.create("flow", 9000, targeted())
		w.create("awaited", 5000, external())
		w.acquire("flow", 0)
		w.suspend("flow", 1, "awaited")
		w.at(9000)
		for range 3 {
			_, sent := w.must(core.Tick{Limit: 1})
			w.sends(sent, "")
		}
	})
}

// deadAwaiter returns a world in which task "flow" has the deadline 5000 and waits for
// "awaited".
func deadAwaiter(t *testing.T) *world {
	w := defaults(t).at(1000)
	w.create("flow", 5000, targeted())
	w.create("awaited", 9000, external())
	w.acquire("flow", 0)
	w.suspend("flow", 1, "awaited")
	return w
}

// A heartbeat extended the lease of a task whose promise had passed its deadline (C7).
func TestKnownBugHeartbeatOfDeadTask(t *testing.T) {
	w := defaults(t).at(1000)
	w.create("p", 5000, targeted())
	w.acquire("p", 0)
	w.at(5000)
	before := w.kv.writes
	w.must(protocol.TaskHeartbeat{PID: "w1", Tasks: []protocol.TaskRef{{ID: "p", Version: 1}}})
	if w.kv.writes != before {
		t.Error("the heartbeat extended a lease")
	}
}

// Answers showed a promise as pending after its deadline, although other answers showed it
// as settled (C8).
func TestKnownBugAnswerWithoutProjection(t *testing.T) {
	w := defaults(t).at(1000)
	all := tags(protocol.TagTarget, worker, protocol.TagBranch, "b", "color", "red")
	w.create("p", 5000, all)
	w.create("sibling", 5000, tags(protocol.TagBranch, "b"))
	w.create("live", 90_000, all)
	w.create("p:flow", 90_000, targeted())
	w.acquire("p:flow", 0)
	w.at(5000)
	for _, op := range []protocol.Operation{
		protocol.PromiseGet{ID: "p"},
		protocol.PromiseCreate{ID: "p", TimeoutAt: 90_000},
		settle("p"),
		protocol.RegisterCallback{Awaited: "p", Awaiter: "p:flow"},
		protocol.RegisterListener{Awaited: "p", Address: worker},
		protocol.PromiseSearch{Tags: tags("color", "red"), State: protocol.RejectedTimeout},
		protocol.TaskCreate{PID: "w1", TTL: 1000, Action: protocol.PromiseCreate{ID: "p", TimeoutAt: 90_000, Tags: targeted()}},
		protocol.TaskAcquire{ID: "live", PID: "w1", TTL: 1000},
		protocol.TaskFence{ID: "p:flow", Version: 1, Action: settle("p")},
		protocol.TaskSuspend{ID: "p:flow", Version: 1, Actions: []protocol.RegisterCallback{{Awaited: "p", Awaiter: "p:flow"}}},
	} {
		r, _ := w.must(op)
		seen := 0
		for _, p := range shown(r) {
			if p.ID == "p" || p.ID == "sibling" {
				seen++
				if p.State != protocol.RejectedTimeout || *p.SettledAt != 5000 {
					t.Errorf("%s shows %s as %s", op.Kind(), p.ID, p.State)
				}
			}
		}
		if _, suspend := op.(protocol.TaskSuspend); seen == 0 && !suspend {
			t.Errorf("%s shows no promise", op.Kind())
		}
	}
}

// shown returns all promises of an answer.
func shown(r protocol.Result) []protocol.Promise {
	list := append(append([]protocol.Promise(nil), r.Preload...), r.Promises...)
	if r.Promise != nil {
		list = append(list, *r.Promise)
	}
	if r.Action != nil {
		list = append(list, shown(*r.Action)...)
	}
	return list
}

// resonate:delay was ignored: the task was offered at once.
func TestKnownBugDelayIgnored(t *testing.T) {
	w := defaults(t).at(1000)
	w.sends(w.create("p", 900_000, tags(protocol.TagTarget, worker, protocol.TagDelay, "200000")), "")
	w.at(100_000)
	w.sends(w.tick(), "") // the retry timeout is 30 s, and has no meaning before the delay
	w.at(200_000)
	w.sends(w.tick(), "execute p v0")
	w.at(230_000)
	w.sends(w.tick(), "execute p v0")
}

// A promise with an empty resonate:target was offered to the address "" once, and then
// never again.
func TestKnownBugEmptyTarget(t *testing.T) {
	w := defaults(t).at(1000)
	empty := tags(protocol.TagTarget, "")
	w.refused(protocol.PromiseCreate{ID: "p", TimeoutAt: 5000, Tags: empty}, 400)
	w.refused(protocol.TaskCreate{PID: "w1", TTL: 1, Action: protocol.PromiseCreate{ID: "p", TimeoutAt: 5000, Tags: empty}}, 400)
	w.refused(protocol.ScheduleCreate{ID: "s", Cron: "* * * * *", PromiseID: "{{.timestamp}}", PromiseTags: empty}, 400)
	w.refused(protocol.PromiseGet{ID: "p"}, 404)
}
