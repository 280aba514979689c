package core_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestRandom carries out random operations. After each one it checks the invariants, the
// properties of the step, that a refusal has written nothing, and that an equal step on an
// equal store has the same outcome.
func TestRandom(t *testing.T) {
	speed.NoRace(t)
	speed.Checks(t, 20, 100, 2000)
	rapid.Check(t, func(r *rapid.T) {
		config := core.Config{RetryTimeout: 20_000, UnblocksMax: 2, UnblockAge: 60_000}
		g := &generator{T: r, world: newWorld(t, config)}
		g.at(rapid.SampledFrom([]int64{0, 1_000_000}).Draw(r, "start"))
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			g.advance()
			g.step(g.operation(), config.RetryTimeout)
		}
	})
}

func (g *generator) step(op protocol.Operation, retry int64) {
	c := change{op: op, now: g.now, retry: retry, a: g.view()}
	if tick, ok := op.(protocol.DebugTick); ok {
		c.now = core.Instant{Wall: tick.Time, Run: tick.Time}
	}
	twin := &world{t: g.world.t, c: g.c, kv: g.kv.copy(), now: g.now}
	before := g.kv.writes
	r, effects := g.c.Step(g.kv, op, g.now)
	if r.Fault != nil {
		g.Fatalf("%s %+v: %v", op.Kind(), op, r.Fault)
	}
	if (r.Status >= 400 || readOnly(op)) && g.kv.writes != before {
		g.Fatalf("%s %+v has written although it has status %d", op.Kind(), op, r.Status)
	}
	g.now = c.now
	if violations := core.Check(g.kv, g.now); violations != nil {
		g.Fatalf("%s %+v: %v", op.Kind(), op, violations)
	}
	c.b, c.effects = g.view(), effects
	if names := c.violated(); names != nil {
		g.Fatalf("%s %+v violates %v", op.Kind(), op, names)
	}
	again, effectsAgain := twin.c.Step(twin.kv, op, twin.now)
	if !reflect.DeepEqual(r, again) || !reflect.DeepEqual(effects, effectsAgain) || !twin.kv.equal(g.kv) {
		g.Fatalf("%s %+v had another outcome when it was repeated", op.Kind(), op)
	}
}

func (m *memory) equal(other *memory) bool {
	for t := range m.tables {
		a, b := m.tables[t].Keys(), other.tables[t].Keys()
		c, d := m.tables[t].Values(), other.tables[t].Values()
		if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(c, d) {
			return false
		}
	}
	return true
}

// generator makes operations that are often valid in the state of its world.
type generator struct {
	*rapid.T
	*world
}

func (g *generator) advance() {
	ms := rapid.SampledFrom([]int64{0, 0, 0, 1, 500, 5000, 10_000, 20_000, 60_000, 4_000_000}).Draw(g.T, "advance")
	switch rapid.SampledFrom([]string{"both", "both", "both", "wall", "run"}).Draw(g.T, "clock") {
	case "wall":
		g.now.Wall += ms
	case "run":
		g.now.Run += ms
	default:
		g.now.Wall += ms
		g.now.Run += ms
	}
}

var (
	ids       = []string{"r", "r:1", "r:2", "r:1.1", "r.9", "q", "q.1", "q.1.1"}
	pids      = []string{"w1", "w2"}
	addresses = []string{"poll://any@w", "poll://uni@w/w1", "https://host/path"}
)

func (g *generator) pick(label string, from []string) string {
	return rapid.SampledFrom(from).Draw(g.T, label)
}

func (g *generator) id() string { return g.pick("id", ids) }

// task returns a task in one of the states if there is one, mostly with its version.
func (g *generator) task(states ...protocol.TaskState) (string, int64) {
	var found []string
	v := g.view()
	for _, id := range ids {
		for _, s := range states {
			if t, ok := v.tasks[id]; ok && t.State == s {
				found = append(found, id)
			}
		}
	}
	id := g.id()
	if len(found) > 0 {
		id = g.pick("task", found)
	}
	version := v.tasks[id].Version
	if rapid.IntRange(0, 9).Draw(g.T, "other version") == 0 {
		version = max(0, version+int64(rapid.IntRange(-1, 1).Draw(g.T, "difference")))
	}
	return id, version
}

// promise returns a promise for which f is true if there is one, or any.
func (g *generator) promise(f func(promiseView) bool) string {
	v := g.view()
	var found []string
	for _, id := range ids {
		if p, ok := v.promises[id]; ok && f(p) {
			found = append(found, id)
		}
	}
	if len(found) > 0 && rapid.IntRange(0, 3).Draw(g.T, "any promise") > 0 {
		return g.pick("promise", found)
	}
	return g.id()
}

func (g *generator) create(id string) protocol.PromiseCreate {
	create := protocol.PromiseCreate{
		ID: id, TimeoutAt: max(0, g.now.Wall+rapid.SampledFrom([]int64{-1, 0, 1, 1000, 10_000, 60_000, 9_000_000}).Draw(g.T, "timeout")),
		Tags: map[string]string{},
	}
	has := func(name string, odds int) bool { return rapid.IntRange(0, 9).Draw(g.T, name) < odds }
	if has("target", 5) {
		create.Tags[protocol.TagTarget] = g.pick("address", addresses)
		if has("delay", 2) {
			create.Tags[protocol.TagDelay] = fmt.Sprint(g.now.Wall + rapid.SampledFrom([]int64{0, 5000, 60_000}).Draw(g.T, "delay ms"))
		}
	}
	if has("external", 6) {
		create.Tags[protocol.TagExternal] = "true"
	}
	if has("timer", 2) {
		create.Tags[protocol.TagTimer] = "true"
	}
	if has("branch", 5) {
		create.Tags[protocol.TagBranch] = g.id()
		create.Tags[protocol.TagParent] = g.id()
	}
	if has("origin", 5) {
		create.Tags[protocol.TagOrigin] = g.pick("origin", []string{"r", "q"})
	}
	if has("own tag", 2) {
		create.Tags["color"] = g.pick("color", []string{"red", "blue"})
	}
	if has("param", 3) {
		create.Param = protocol.Value{Data: &id, Headers: map[string]string{"a": "b"}}
	}
	return create
}

func (g *generator) settle(id string) protocol.PromiseSettle {
	state := rapid.SampledFrom([]protocol.PromiseState{protocol.Resolved, protocol.Rejected, protocol.RejectedCancel}).Draw(g.T, "state")
	return protocol.PromiseSettle{ID: id, State: state, Value: protocol.Value{Data: &id}}
}

func (g *generator) operation() protocol.Operation {
	switch g.pick("of", []string{"promise", "promise", "task", "task", "task", "other"}) {
	case "promise":
		return g.promiseOperation()
	case "task":
		return g.taskOperation()
	}
	return g.otherOperation()
}

func (g *generator) promiseOperation() protocol.Operation {
	switch g.pick("kind", []string{"create", "create", "create", "settle", "settle", "callback", "listener", "listener", "get"}) {
	case "create":
		return g.create(g.id())
	case "settle":
		return g.settle(g.promise(func(p promiseView) bool { return len(p.callbacks) > 0 }))
	case "callback":
		return protocol.RegisterCallback{Awaited: g.id(), Awaiter: g.id()}
	case "listener":
		return protocol.RegisterListener{Awaited: g.promise(func(p promiseView) bool { return p.live(g.now) }), Address: g.pick("address", addresses)}
	}
	return protocol.PromiseGet{ID: g.id()}
}

func (g *generator) taskOperation() protocol.Operation {
	ttl := rapid.SampledFrom([]int64{1, 8000, 60_000}).Draw(g.T, "ttl")
	pid := g.pick("pid", pids)
	switch g.pick("kind", []string{"create", "acquire", "acquire", "release", "fulfill", "suspend", "suspend", "suspend", "fence", "heartbeat", "halt", "continue", "get"}) {
	case "create":
		create := g.create(g.id())
		create.Tags[protocol.TagTarget] = g.pick("address", addresses)
		delete(create.Tags, protocol.TagDelay)
		return protocol.TaskCreate{PID: pid, TTL: ttl, Action: create}
	case "acquire":
		id, version := g.task(protocol.TaskPending)
		return protocol.TaskAcquire{ID: id, Version: version, PID: pid, TTL: ttl}
	case "release":
		id, version := g.task(protocol.TaskAcquired)
		return protocol.TaskRelease{ID: id, Version: version}
	case "fulfill":
		id, version := g.task(protocol.TaskAcquired)
		return protocol.TaskFulfill{ID: id, Version: version, Action: g.settle(id)}
	case "suspend":
		id, version := g.task(protocol.TaskAcquired)
		op := protocol.TaskSuspend{ID: id, Version: version}
		for range rapid.IntRange(1, 3).Draw(g.T, "actions") {
			awaited := g.promise(func(p promiseView) bool { return p.live(g.now) && p.ID != id })
			op.Actions = append(op.Actions, protocol.RegisterCallback{Awaited: awaited, Awaiter: id})
		}
		return op
	case "fence":
		id, version := g.task(protocol.TaskAcquired)
		if rapid.Bool().Draw(g.T, "create") {
			return protocol.TaskFence{ID: id, Version: version, Action: g.create(g.id())}
		}
		return protocol.TaskFence{ID: id, Version: version, Action: g.settle(g.id())}
	case "heartbeat":
		op := protocol.TaskHeartbeat{PID: pid}
		for range rapid.IntRange(0, 3).Draw(g.T, "tasks") {
			id, version := g.task(protocol.TaskAcquired)
			op.Tasks = append(op.Tasks, protocol.TaskRef{ID: id, Version: version})
		}
		return op
	case "halt":
		id, _ := g.task(protocol.TaskPending, protocol.TaskAcquired, protocol.TaskSuspended)
		return protocol.TaskHalt{ID: id}
	case "continue":
		id, _ := g.task(protocol.TaskHalted)
		return protocol.TaskContinue{ID: id}
	}
	return protocol.TaskGet{ID: g.id()}
}

func (g *generator) otherOperation() protocol.Operation {
	switch g.pick("kind", []string{"tick", "tick", "tick", "delivered", "debug.tick", "schedule", "delete", "search", "tasks"}) {
	case "tick":
		return core.Tick{Limit: rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(g.T, "limit")}
	case "delivered":
		return core.Delivered{Promise: g.id(), Address: g.pick("address", addresses)}
	case "debug.tick":
		return protocol.DebugTick{Time: max(g.now.Wall, g.now.Run)}
	case "schedule":
		return protocol.ScheduleCreate{
			ID: g.pick("schedule", []string{"s1", "s2"}), Cron: g.pick("cron", []string{"* * * * *", "*/30 * * * * *", "*/30 * * * * * x"}),
			PromiseID: "{{.id}}.{{.timestamp}}", PromiseTimeout: 50_000, PromiseTags: map[string]string{protocol.TagTarget: addresses[0]},
		}
	case "delete":
		return protocol.ScheduleDelete{ID: g.pick("schedule", []string{"s1", "s2"})}
	case "search":
		states := []protocol.PromiseState{"", protocol.Pending, protocol.Resolved, protocol.Rejected, protocol.RejectedCancel, protocol.RejectedTimeout}
		return protocol.PromiseSearch{State: rapid.SampledFrom(states).Draw(g.T, "state"), Limit: 3}
	}
	return protocol.TaskSearch{Limit: 3}
}
