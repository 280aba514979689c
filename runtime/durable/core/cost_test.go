package core_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestCostDoesNotGrow counts the entries that operations read and write, in a store with
// 200 promises and in one with 20,000 of each kind. The numbers must be the same.
func TestCostDoesNotGrow(t *testing.T) {
	small, large := costs(t, 200), costs(t, fewer(t, 20_000))
	if !maps.Equal(small, large) {
		t.Errorf("in a small store the operations access %v entries, in a large store %v", small, large)
	}
	for name, n := range small {
		if n == 0 || n > 60 {
			t.Errorf("%s accesses %d entries", name, n)
		}
	}
	t.Log(small)
}

// costs returns the number of accesses of operations in a store with promises that are
// pending, settled, expired, targeted, suspended and awaited.
func costs(t *testing.T, promises int) map[string]int {
	w := defaults(t).at(1000)
	w.quick(protocol.PromiseCreate{ID: "awaited", TimeoutAt: 900_000, Tags: external()})
	w.quick(protocol.PromiseCreate{ID: "job", TimeoutAt: 900_000, Tags: external()})
	for i := range promises {
		id := fmt.Sprintf("%06d", i)
		w.quick(protocol.PromiseCreate{ID: "open" + id, TimeoutAt: 900_000, Tags: tags("color", "blue", protocol.TagBranch, "many")})
		w.quick(protocol.PromiseCreate{ID: "done" + id, TimeoutAt: 900_000, Tags: external()})
		w.quick(protocol.RegisterListener{Awaited: "done" + id, Address: "poll://uni@c/" + id})
		w.quick(settle("done" + id))
		w.quick(protocol.PromiseCreate{ID: "task" + id, TimeoutAt: 900_000, Tags: targeted()})
		w.quick(protocol.TaskCreate{PID: "w", TTL: 500_000, Action: protocol.PromiseCreate{ID: "flow" + id, TimeoutAt: 900_000, Tags: targeted()}})
		w.quick(protocol.TaskSuspend{ID: "flow" + id, Version: 1, Actions: []protocol.RegisterCallback{{Awaited: "awaited", Awaiter: "flow" + id}}})
		w.quick(protocol.ScheduleCreate{ID: "s" + id, Cron: "0 0 1 1 *", PromiseID: "{{.timestamp}}", PromiseTags: targeted()})
	}
	n := map[string]int{}
	count := func(name string, op protocol.Operation) {
		before := w.kv.accesses
		w.quick(op)
		n[name] = w.kv.accesses - before
	}
	root := tags(protocol.TagTarget, worker, protocol.TagBranch, "root", "color", "red")
	count("create", protocol.PromiseCreate{ID: "root", TimeoutAt: 900_000, Tags: root})
	count("get", protocol.PromiseGet{ID: "open000007"})
	count("listen", protocol.RegisterListener{Awaited: "root", Address: "poll://any@c"})
	count("acquire", protocol.TaskAcquire{ID: "root", PID: "w", TTL: 1000})
	count("fence", protocol.TaskFence{ID: "root", Version: 1, Action: protocol.PromiseCreate{ID: "root:1", TimeoutAt: 900_000, Tags: tags(protocol.TagBranch, "root")}})
	w.at(1500)
	count("heartbeat", protocol.TaskHeartbeat{PID: "w", Tasks: []protocol.TaskRef{{ID: "root", Version: 1}}})
	count("suspend", protocol.TaskSuspend{ID: "root", Version: 1, Actions: []protocol.RegisterCallback{{Awaited: "job", Awaiter: "root"}}})
	count("settle", settle("job"))
	count("acquire again", protocol.TaskAcquire{ID: "root", Version: 1, PID: "w", TTL: 1000})
	count("release", protocol.TaskRelease{ID: "root", Version: 2})
	count("halt", protocol.TaskHalt{ID: "root"})
	count("continue", protocol.TaskContinue{ID: "root"})
	count("settle a root", settle("root"))
	count("delivered", core.Delivered{Promise: "root", Address: "poll://any@c"})
	count("search by tag", protocol.PromiseSearch{Tags: tags("color", "red")})
	count("search by state", protocol.PromiseSearch{State: protocol.Pending, Limit: 5})
	count("search tasks", protocol.TaskSearch{State: protocol.TaskSuspended, Limit: 5})
	count("schedule", protocol.ScheduleCreate{ID: "s", Cron: "* * * * *", PromiseID: "x{{.timestamp}}", PromiseTags: targeted()})
	count("tick", core.Tick{})
	w.at(60_000)
	count("tick with work", core.Tick{Limit: 5})
	return n
}
