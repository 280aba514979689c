package core_test

import (
	"testing"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// The tests of this file fail for a core that follows the text of the recovery protocol
// where the text contradicts itself, other documents or the SDKs. docs/reference has a
// table of these decisions.

// S-F1: the version grows with each acquisition, not when a lease ends or is released.
func TestFlaw1VersionGrowsWithAcquisitionAlone(t *testing.T) {
	w := defaults(t).at(1000)
	w.create("p", 900_000, targeted())
	w.acquire("p", 0)
	w.isTask("p", protocol.TaskAcquired, 1)
	_, sent := w.must(protocol.TaskRelease{ID: "p", Version: 1})
	w.sends(sent, "execute p v1")
	w.isTask("p", protocol.TaskPending, 1)
	w.acquire("p", 1)
	w.at(11_000)
	w.sends(w.tick(), "execute p v2")
	w.isTask("p", protocol.TaskPending, 2)
	w.must(protocol.TaskHalt{ID: "p"})
	w.must(protocol.TaskContinue{ID: "p"})
	w.isTask("p", protocol.TaskPending, 2)
}

// S-F2: only external promises have a timeout entry. The invariant missing_ptimeout must
// not ask for one of an internal promise.
func TestFlaw2InternalPromiseNeedsNoTimeout(t *testing.T) {
	w := defaults(t).at(1000)
	w.create("internal", 5000, nil) // checks all invariants
	w.create("external", 5000, external())
	if snap, _ := w.must(protocol.DebugSnap{}); len(snap.Snapshot.PromiseTimeouts) != 1 {
		t.Errorf("the timeout entries are %v", snap.Snapshot.PromiseTimeouts)
	}
}

// S-F3: a suspended task whose own deadline has passed may wait for no promise.
func TestFlaw3DeadSuspendedTaskNeedsNoCallback(t *testing.T) {
	w := deadAwaiter(t).at(6000)
	w.must(settle("awaited")) // checks all invariants: the task is suspended and has no callback
	if snap, _ := w.must(protocol.DebugSnap{}); snap.Snapshot.Tasks[0].State != protocol.TaskSuspended || len(snap.Snapshot.Callbacks) != 0 {
		t.Errorf("the task is %s with the callbacks %v", snap.Snapshot.Tasks[0].State, snap.Snapshot.Callbacks)
	}
}

// S-F4: the sleep of the TypeScript SDK creates a promise with timer and target. The formal
// specification refuses it.
func TestFlaw4TimerWithTarget(t *testing.T) {
	both := tags(protocol.TagTarget, worker, protocol.TagTimer, "true")
	create := protocol.PromiseCreate{ID: "sleep", TimeoutAt: 5000, Tags: both}
	w := defaults(t).at(1000)
	_, sent := w.must(create)
	w.sends(sent, "execute sleep v0")
	w.at(5000)
	w.sends(w.tick(), "")
	if p := w.promise("sleep"); p.State != protocol.Resolved {
		t.Errorf("after its deadline the sleep is %s", p.State)
	}
	w.isTask("sleep", protocol.TaskFulfilled, 0)

	strict := newWorld(t, core.Config{Strict: true}).at(1000)
	strict.refused(create, 400)
	strict.refused(protocol.TaskCreate{PID: "w", TTL: 1, Action: create}, 400)
	strict.refused(protocol.ScheduleCreate{ID: "s", Cron: "* * * * *", PromiseID: "{{.timestamp}}", PromiseTags: both}, 400)
	strict.create("flow", 90_000, targeted())
	strict.acquire("flow", 0)
	if r, _ := strict.must(protocol.TaskFence{ID: "flow", Version: 1, Action: create}); r.Action.Status != 400 {
		t.Errorf("the action of the fence has status %d", r.Action.Status)
	}
}

// S-F5: a listener on an internal promise is refused, but scope=global makes it external.
func TestFlaw5ListenerOfInternalPromise(t *testing.T) {
	w := defaults(t).at(1000)
	w.create("internal", 5000, tags(protocol.TagScope, "local"))
	w.create("global", 5000, tags(protocol.TagScope, "global"))
	w.refused(protocol.RegisterListener{Awaited: "internal", Address: worker}, 422)
	w.must(protocol.RegisterListener{Awaited: "global", Address: worker})
	w.at(5000)
	w.sends(w.tick(), "unblock global")
}

// S-F6: a heartbeat extends only leases of the same process.
func TestFlaw6HeartbeatOfAnotherProcess(t *testing.T) {
	w := defaults(t).at(1000)
	w.create("p", 900_000, targeted())
	w.acquire("p", 0)
	w.at(9000)
	w.must(protocol.TaskHeartbeat{PID: "w2", Tasks: []protocol.TaskRef{{ID: "p", Version: 1}}})
	w.at(11_000)
	w.sends(w.tick(), "execute p v1")
}

// S-F7: a fence of a worker whose lease has ended gets 409, and does nothing.
func TestFlaw7FenceOfOldVersion(t *testing.T) {
	w := defaults(t).at(1000)
	w.create("p", 900_000, targeted())
	w.acquire("p", 0)
	w.at(11_000)
	w.tick()
	w.acquire("p", 1)
	w.refused(protocol.TaskFence{ID: "p", Version: 1, Action: protocol.PromiseCreate{ID: "q", TimeoutAt: 90_000}}, 409)
	w.refused(protocol.PromiseGet{ID: "q"}, 404)
}

// S-F8: the retry timeout is 30 seconds, and a setting.
func TestFlaw8RetryTimeout(t *testing.T) {
	for setting, ms := range map[int64]int64{0: 30_000, 70: 70} {
		w := newWorld(t, core.Config{RetryTimeout: setting}).at(1000)
		w.create("p", 900_000, targeted())
		w.at(1000 + ms - 1)
		w.sends(w.tick(), "")
		w.at(1000 + ms)
		w.sends(w.tick(), "execute p v0")
		if wait, ok := core.Next(w.kv, w.now); !ok || wait != ms {
			t.Errorf("the next retry is in %d ms, want %d", wait, ms)
		}
	}
}

// S-F9: an unblock message is kept until a connection took it.
func TestFlaw9UndeliveredUnblock(t *testing.T) {
	w := defaults(t).at(1000)
	w.create("p", 5000, external())
	w.must(protocol.RegisterListener{Awaited: "p", Address: "poll://uni@c/1"})
	_, sent := w.must(settle("p"))
	w.sends(sent, "unblock p")
	for range 2 {
		kept := 0
		for e, err := range core.Unblocks(w.kv, "poll://uni@c/1") {
			if err != nil || e.Message.Unblock.State != protocol.Resolved {
				t.Fatalf("the message is %v, %v", e.Message, err)
			}
			kept++
		}
		if kept != 1 {
			t.Fatalf("%d messages are kept", kept)
		}
	}
	w.must(core.Delivered{Promise: "p", Address: "poll://uni@c/1"})
	for range core.Unblocks(w.kv, "poll://uni@c/1") {
		t.Fatal("a delivered message is kept")
	}
	for address := range core.UnblockAddresses(w.kv, "") {
		t.Fatalf("%s is listed although it has no messages", address)
	}
}

// S-F11: leases and retries do not depend on the time of day.
func TestFlaw11ClockJumps(t *testing.T) {
	w := defaults(t).at(1_000_000)
	w.create("p", 90_000_000, targeted())
	w.create("q", 90_000_000, targeted())
	w.acquire("p", 0)
	w.now.Wall += 80_000_000 // the clock was set
	w.sends(w.tick(), "")
	w.now.Run += 10_000
	w.sends(w.tick(), "execute p v1")
	w.now.Run += 20_000
	w.sends(w.tick(), "execute q v0")
}
