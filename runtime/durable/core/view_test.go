package core_test

import (
	"maps"
	"slices"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// view is the content of a store as the formal specification sees it.
type view struct {
	promises map[string]promiseView
	tasks    map[string]taskView
	outbox   map[message]protocol.Promise // undelivered unblock messages
}

type promiseView struct {
	protocol.Promise
	callbacks map[string]bool // awaiters
	listeners map[string]bool // addresses
}

type taskView struct {
	protocol.Task
	retry, lease int64 // when it ends, or -1
}

type message struct{ promise, address string }

func (w *world) view() *view {
	w.t.Helper()
	r, _ := w.c.Step(w.kv, protocol.DebugSnap{}, w.now)
	if r.Fault != nil {
		w.t.Fatal(r.Fault)
	}
	v := &view{map[string]promiseView{}, map[string]taskView{}, map[message]protocol.Promise{}}
	for _, p := range r.Snapshot.Promises {
		v.promises[p.ID] = promiseView{p, map[string]bool{}, map[string]bool{}}
	}
	for _, c := range r.Snapshot.Callbacks {
		v.promises[c.Awaited].callbacks[c.Awaiter] = true
	}
	for _, l := range r.Snapshot.Listeners {
		v.promises[l.ID].listeners[l.Address] = true
	}
	for _, t := range r.Snapshot.Tasks {
		v.tasks[t.ID] = taskView{t, -1, -1}
	}
	for _, timeout := range r.Snapshot.TaskTimeouts {
		t := v.tasks[timeout.ID]
		if timeout.Type == 0 {
			t.retry = timeout.Timeout
		} else {
			t.lease = timeout.Timeout
		}
		v.tasks[timeout.ID] = t
	}
	for _, m := range r.Snapshot.Messages {
		v.outbox[message{m.Message.Unblock.ID, m.Address}] = *m.Message.Unblock
	}
	return v
}

// live reports whether a promise is pending at an instant.
func (p promiseView) live(now core.Instant) bool {
	return p.State == protocol.Pending && now.Wall < p.TimeoutAt
}

func (p promiseView) outcome() protocol.PromiseState {
	if p.Tags[protocol.TagTimer] == "true" {
		return protocol.Resolved
	}
	return protocol.RejectedTimeout
}

// change is a step with the contents of the store before and after it.
type change struct {
	op      protocol.Operation
	now     core.Instant
	retry   int64 // the retry timeout
	a, b    *view
	effects []core.Effect
}

// internal reports whether the driver made the step on its own initiative.
func (c *change) internal() bool {
	switch c.op.(type) {
	case core.Tick, core.Delivered, protocol.DebugTick:
		return true
	}
	return false
}

// violated returns the names of the transition properties that a step breaks.
func (c *change) violated() []string {
	if _, ok := c.op.(protocol.DebugReset); ok {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(promiseProperties)) {
		for id, q := range c.b.promises {
			p, old := c.a.promises[id]
			if !promiseProperties[name](c, p, q, old) {
				names = append(names, name+" of "+id)
			}
		}
	}
	for _, properties := range []map[string]func(c *change, t, u taskView, old bool) bool{taskProperties, requestProperties} {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			for id, u := range c.b.tasks {
				t, old := c.a.tasks[id]
				if !properties[name](c, t, u, old) {
					names = append(names, name+" of "+id)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stepProperties)) {
		if !stepProperties[name](c) {
			names = append(names, name)
		}
	}
	return names
}
