package core_test

import (
	"fmt"
	"testing"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// bench runs f with a store in memory that has a number of promises, half of them settled.
func bench(b *testing.B, f func(b *testing.B, step func(op protocol.Operation) protocol.Result)) {
	for _, promises := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("promises=%d", promises), func(b *testing.B) {
			c, err := core.New(core.Config{})
			if err != nil {
				b.Fatal(err)
			}
			err = store.NewMemory().Update(func(tx store.Tx) error {
				now := core.Instant{Wall: 1000, Run: 1000}
				step := func(op protocol.Operation) protocol.Result {
					r, _ := c.Step(tx, op, now)
					if r.Status >= 400 {
						b.Fatalf("%s: %d %s", op.Kind(), r.Status, r.Error)
					}
					return r
				}
				for i := range promises / 2 {
					step(protocol.PromiseCreate{ID: fmt.Sprintf("old-%08d", i), TimeoutAt: 1 << 50, Tags: external()})
					step(protocol.PromiseCreate{ID: fmt.Sprintf("done-%08d", i), TimeoutAt: 1 << 50})
					step(settle(fmt.Sprintf("done-%08d", i)))
				}
				b.ResetTimer()
				b.ReportAllocs()
				f(b, step)
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// numbered returns ids that are made before the measurement.
func numbered(b *testing.B) []string {
	list := make([]string, b.N)
	for i := range list {
		list[i] = fmt.Sprintf("p-%08d", i)
	}
	b.ResetTimer()
	return list
}

func BenchmarkCreateAndSettle(b *testing.B) {
	bench(b, func(b *testing.B, step func(op protocol.Operation) protocol.Result) {
		data := "a short parameter of some text"
		for _, id := range numbered(b) {
			step(protocol.PromiseCreate{ID: id, TimeoutAt: 1 << 50, Param: protocol.Value{Data: &data}})
			step(protocol.PromiseSettle{ID: id, State: protocol.Resolved, Value: protocol.Value{Data: &data}})
		}
	})
}

func BenchmarkGet(b *testing.B) {
	bench(b, func(b *testing.B, step func(op protocol.Operation) protocol.Result) {
		for b.Loop() {
			step(protocol.PromiseGet{ID: "done-00000077"})
		}
	})
}

// BenchmarkWorkflow is a whole execution: a promise with a listener, a task that a worker
// acquires, two steps, and the end.
func BenchmarkWorkflow(b *testing.B) {
	bench(b, func(b *testing.B, step func(op protocol.Operation) protocol.Result) {
		for _, id := range numbered(b) {
			root := tags(protocol.TagScope, "global", protocol.TagTarget, worker, protocol.TagBranch, id, protocol.TagParent, id, protocol.TagOrigin, id)
			local := tags(protocol.TagScope, "local", protocol.TagBranch, id, protocol.TagParent, id, protocol.TagOrigin, id)
			step(protocol.PromiseCreate{ID: id, TimeoutAt: 1 << 50, Tags: root})
			step(protocol.RegisterListener{Awaited: id, Address: "poll://uni@client/1"})
			step(protocol.TaskAcquire{ID: id, PID: "w", TTL: 10_000})
			for _, child := range []string{id + ":1", id + ":2"} {
				step(protocol.TaskFence{ID: id, Version: 1, Action: protocol.PromiseCreate{ID: child, TimeoutAt: 1 << 50, Tags: local}})
				step(protocol.TaskFence{ID: id, Version: 1, Action: settle(child)})
			}
			step(protocol.TaskFulfill{ID: id, Version: 1, Action: settle(id)})
			step(core.Delivered{Promise: id, Address: "poll://uni@client/1"})
		}
	})
}

func BenchmarkHeartbeat(b *testing.B) {
	bench(b, func(b *testing.B, step func(op protocol.Operation) protocol.Result) {
		op := protocol.TaskHeartbeat{PID: "w"}
		for i := range 1000 {
			id := fmt.Sprint("task", i)
			step(protocol.TaskCreate{PID: "w", TTL: int64(10_000 + i), Action: protocol.PromiseCreate{ID: id, TimeoutAt: 1 << 50, Tags: targeted()}})
			op.Tasks = append(op.Tasks, protocol.TaskRef{ID: id, Version: 1})
		}
		for b.Loop() {
			step(op)
		}
	})
}

// BenchmarkPreload acquires a task whose branch has 1,000 promises.
func BenchmarkPreload(b *testing.B) {
	bench(b, func(b *testing.B, step func(op protocol.Operation) protocol.Result) {
		data := `"a result"`
		flow := protocol.PromiseCreate{ID: "flow", TimeoutAt: 1 << 50, Tags: tags(protocol.TagTarget, worker, protocol.TagBranch, "flow")}
		step(flow)
		for i := range 1000 {
			id := fmt.Sprint("flow.", i)
			step(protocol.PromiseCreate{ID: id, TimeoutAt: 1 << 50, Tags: tags(protocol.TagScope, "local", protocol.TagBranch, "flow", protocol.TagParent, "flow", protocol.TagOrigin, "flow")})
			step(protocol.PromiseSettle{ID: id, State: protocol.Resolved, Value: protocol.Value{Data: &data}})
		}
		version := int64(0)
		for b.Loop() {
			if r := step(protocol.TaskAcquire{ID: "flow", Version: version, PID: "w", TTL: 1000}); len(r.Preload) != 1000 {
				b.Fatalf("the preload has %d promises", len(r.Preload))
			}
			version++
			step(protocol.TaskRelease{ID: "flow", Version: version})
		}
	})
}

func BenchmarkIdleTick(b *testing.B) {
	bench(b, func(b *testing.B, step func(op protocol.Operation) protocol.Result) {
		for b.Loop() {
			step(core.Tick{})
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	bench(b, func(b *testing.B, step func(op protocol.Operation) protocol.Result) {
		for b.Loop() {
			if r := step(protocol.PromiseSearch{State: protocol.Pending, Limit: 100}); len(r.Promises) != 100 {
				b.Fatalf("%d promises", len(r.Promises))
			}
		}
	})
}
