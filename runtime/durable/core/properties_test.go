package core_test

import (
	"maps"
	"reflect"
	"slices"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// The transition properties of the formal specification (spec/02-abstract/properties.lean),
// under their names. Its properties of a single state are part of core.Check, or hold
// because of the keys of the tables. The steps of this core are larger: a settlement
// notifies all listeners and awaiters at once, and a Tick processes several timeouts.
//
// p and t are a promise and a task before the step, q and u after it. They are zero if old
// is false: then the step has created the promise or task.
var promiseProperties = map[string]func(c *change, p, q promiseView, old bool) bool{
	"preserved_promise_birth_fields_immutable": func(_ *change, p, q promiseView, old bool) bool {
		return !old || reflect.DeepEqual(p.Param, q.Param) && maps.Equal(p.Tags, q.Tags) && p.TimeoutAt == q.TimeoutAt && p.CreatedAt == q.CreatedAt
	},
	"preserved_settled_promise_record": func(_ *change, p, q promiseView, old bool) bool {
		return !old || p.State == protocol.Pending || reflect.DeepEqual(p.Promise, q.Promise)
	},
	"consistent_promise_settled_at_moves_with_state": func(_ *change, p, q promiseView, old bool) bool {
		return !old || (p.State == q.State) == reflect.DeepEqual(p.SettledAt, q.SettledAt)
	},
	"preserved_promise_value_until_settlement": func(_ *change, p, q promiseView, old bool) bool {
		return !old || q.State != protocol.Pending || reflect.DeepEqual(p.Value, q.Value)
	},
	"monotone_promise_callbacks_grow_while_pending": func(_ *change, p, q promiseView, _ bool) bool {
		return q.State != protocol.Pending || subset(p.callbacks, q.callbacks)
	},
	"monotone_promise_callbacks_shrink_once_settled": func(_ *change, p, q promiseView, _ bool) bool {
		return q.State == protocol.Pending || subset(q.callbacks, p.callbacks)
	},
	"monotone_promise_listeners_grow_while_pending": func(_ *change, p, q promiseView, _ bool) bool {
		return q.State != protocol.Pending || subset(p.listeners, q.listeners)
	},
	"monotone_promise_listeners_shrink_once_settled": func(_ *change, p, q promiseView, _ bool) bool {
		return q.State == protocol.Pending || subset(q.listeners, p.listeners)
	},
	"consistent_promise_state_edge_admissible": func(_ *change, p, q promiseView, old bool) bool {
		return !old || p.State == protocol.Pending || p.State == q.State
	},
	"consistent_settlement_fulfils_task": func(c *change, p, q promiseView, old bool) bool {
		u, targeted := c.b.tasks[q.ID]
		return !old || p.State != protocol.Pending || q.State == protocol.Pending || !targeted || u.State == protocol.TaskFulfilled
	},
	"consistent_callback_consumption_resumes_awaiter": func(c *change, p, q promiseView, _ bool) bool {
		for awaiter := range p.callbacks {
			u := c.b.tasks[awaiter]
			resumed := slices.Contains(u.Resumes, p.ID) || u.State == protocol.TaskFulfilled || !c.b.promises[awaiter].live(c.now)
			if !q.callbacks[awaiter] && !resumed {
				return false
			}
		}
		return true
	},
	"consistent_listener_consumption_enqueues_unblock": func(c *change, p, q promiseView, _ bool) bool {
		for address := range p.listeners {
			if !q.listeners[address] && c.sent(p.ID, address) != 1 {
				return false
			}
		}
		return true
	},
	"consistent_promise_state_edge_internal_admissible": func(c *change, p, q promiseView, old bool) bool {
		return !old || !c.internal() || p.State == q.State || q.State == p.outcome()
	},
	"consistent_promise_settlement_stamp": func(c *change, p, q promiseView, old bool) bool {
		if !old || p.State != protocol.Pending || q.State == protocol.Pending {
			return true
		}
		byClient := *q.SettledAt == c.now.Wall && c.now.Wall < q.TimeoutAt && q.State != protocol.RejectedTimeout
		byDeadline := *q.SettledAt == q.TimeoutAt && q.TimeoutAt <= c.now.Wall && q.State == q.outcome() && q.Value.Data == nil
		return byClient || byDeadline
	},
	"consistent_new_promise_born_clean": func(c *change, _, q promiseView, old bool) bool {
		if old {
			return true
		}
		// a Tick creates the promise of a missed occurrence and ends it at its deadline
		_, missed := q.Tags[protocol.TagSchedule]
		live := q.State == protocol.Pending && q.CreatedAt < q.TimeoutAt && (q.CreatedAt == c.now.Wall || missed && q.CreatedAt < c.now.Wall)
		dead := q.State == q.outcome() && (q.CreatedAt == q.TimeoutAt || missed && q.CreatedAt < q.TimeoutAt) &&
			q.TimeoutAt <= c.now.Wall && *q.SettledAt == q.TimeoutAt
		return len(q.callbacks)+len(q.listeners) == 0 && q.Value.Data == nil && (live || dead)
	},
}

var taskProperties = map[string]func(c *change, t, u taskView, old bool) bool{
	"monotone_task_version_increases_only_on_acquisition": func(_ *change, t, u taskView, old bool) bool {
		if old && t.State == protocol.TaskPending && u.State == protocol.TaskAcquired {
			return u.Version == t.Version+1
		}
		return !old || u.Version == t.Version
	},
	"preserved_fulfilled_task": func(_ *change, t, u taskView, old bool) bool {
		cleared := len(u.Resumes) == 0 && u.PID == nil && u.TTL == nil && u.lease < 0 && u.retry < 0
		return u.State != protocol.TaskFulfilled && (!old || t.State != protocol.TaskFulfilled) || u.State == protocol.TaskFulfilled && cleared
	},
	"preserved_no_dead_dispatch": func(c *change, t, u taskView, old bool) bool {
		return u.State != protocol.TaskPending || old && t.State == protocol.TaskPending || c.b.promises[u.ID].live(c.now)
	},
	"consistent_task_state_edge_admissible": func(c *change, t, u taskView, old bool) bool {
		return !old || t.State == u.State && t.State != "" || slices.Contains(taskEdges[t.State], u.State)
	},
	"consistent_task_state_edge_internal_admissible": func(c *change, t, u taskView, old bool) bool {
		return !old || !c.internal() || t.State == u.State || slices.Contains(internalTaskEdges[t.State], u.State)
	},
	"consistent_task_fulfilment_needs_settlement": func(c *change, t, u taskView, old bool) bool {
		settled := c.a.promises[u.ID].State == protocol.Pending && c.b.promises[u.ID].State != protocol.Pending
		return !old || u.State != protocol.TaskFulfilled || t.State == protocol.TaskFulfilled || settled
	},
	"consistent_wake_follows_callback_consumption": func(c *change, t, u taskView, old bool) bool {
		if !old || t.State != protocol.TaskSuspended || u.State != protocol.TaskPending {
			return true
		}
		for id, p := range c.a.promises {
			if p.callbacks[u.ID] && !c.b.promises[id].callbacks[u.ID] && slices.Contains(u.Resumes, id) {
				return true
			}
		}
		return false
	},
	"consistent_task_wake_records_resume": func(c *change, t, u taskView, old bool) bool {
		woken := old && t.State == protocol.TaskSuspended && u.State == protocol.TaskPending
		return !woken || len(u.Resumes) > 0 && u.retry == c.now.Run+c.retry && u.Version == t.Version
	},
	"consistent_suspension_registers_callback": func(c *change, t, u taskView, old bool) bool {
		if u.State != protocol.TaskSuspended || t.State == protocol.TaskSuspended {
			return true
		}
		for _, q := range c.b.promises {
			if q.callbacks[u.ID] && q.State == protocol.Pending {
				return true
			}
		}
		return false
	},
	"consistent_task_birth_couples_promise_birth": func(c *change, _, u taskView, old bool) bool {
		_, was := c.a.promises[u.ID]
		q, is := c.b.promises[u.ID]
		return old || !was && is && q.Tags[protocol.TagTarget] != "" && (u.State == protocol.TaskFulfilled) == (q.State != protocol.Pending)
	},
	"consistent_task_birth_state": func(c *change, _, u taskView, old bool) bool {
		switch {
		case old:
			return true
		case u.State == protocol.TaskPending:
			return u.Version == 0 && u.retry >= 0 && u.lease < 0 && u.PID == nil && len(u.Resumes) == 0
		case u.State == protocol.TaskAcquired:
			return u.Version == 1 && u.retry < 0 && u.lease >= 0 && u.PID != nil && u.TTL != nil && len(u.Resumes) == 0
		}
		return u.State == protocol.TaskFulfilled && u.Version == 0
	},
	"consistent_task_lease_fields_move_together": func(_ *change, t, u taskView, old bool) bool {
		held := u.State == protocol.TaskAcquired
		return held == (u.PID != nil) && held == (u.TTL != nil) && held == (u.lease >= 0) && (u.State == protocol.TaskPending) == (u.retry >= 0)
	},
	"preserved_task_lease_holder_stable": func(_ *change, t, u taskView, old bool) bool {
		same := old && t.State == protocol.TaskAcquired && u.State == protocol.TaskAcquired && t.Version == u.Version
		return !same || *t.PID == *u.PID && *t.TTL == *u.TTL
	},
	"monotone_task_resumes_grow_or_clear": func(_ *change, t, u taskView, old bool) bool {
		for _, id := range t.Resumes {
			if len(u.Resumes) > 0 && !slices.Contains(u.Resumes, id) {
				return false
			}
		}
		return true
	},
	"consistent_task_resumes_cleared_only_on_dispatch_or_park": func(_ *change, t, u taskView, _ bool) bool {
		cleared := len(t.Resumes) > 0 && len(u.Resumes) == 0
		return !cleared || u.State == protocol.TaskAcquired || u.State == protocol.TaskSuspended || u.State == protocol.TaskFulfilled
	},
	"consistent_task_acquisition_is_atomic": func(c *change, t, u taskView, old bool) bool {
		acquired := old && t.State != protocol.TaskAcquired && u.State == protocol.TaskAcquired
		return !acquired || t.State == protocol.TaskPending && u.lease == c.now.Run+*u.TTL && len(u.Resumes) == 0
	},
	"consistent_task_lease_deadline_is_now_plus_ttl": func(c *change, t, u taskView, old bool) bool {
		return u.lease < 0 || u.lease == c.now.Run+*u.TTL || old && t.lease == u.lease && t.State == u.State
	},
	"consistent_task_pending_entry_arms_retry": func(c *change, t, u taskView, old bool) bool {
		entered := old && t.State != protocol.TaskPending && u.State == protocol.TaskPending
		return !entered || u.retry == c.now.Run+c.retry
	},
	"monotone_task_retry_rearm_advances": func(c *change, t, u taskView, old bool) bool {
		rearmed := old && t.State == protocol.TaskPending && u.State == protocol.TaskPending && t.retry != u.retry
		// released and leased in between is not possible in one step, so it was due: a retry by
		// Run, a delay by Wall
		return !rearmed || u.retry > c.now.Run && (t.retry <= c.now.Run || t.retry <= c.now.Wall)
	},
}

// The properties below are not part of the specification, because they need the request.
var requestProperties = map[string]func(c *change, t, u taskView, old bool) bool{
	"dead_task_changes_by_its_timeout_alone": func(c *change, t, u taskView, old bool) bool {
		return !old || c.internal() || c.a.promises[u.ID].live(c.now) || reflect.DeepEqual(t, u)
	},
	"lease_is_extended_by_its_holder": func(c *change, t, u taskView, old bool) bool {
		heartbeat, ok := c.op.(protocol.TaskHeartbeat)
		extended := old && t.State == protocol.TaskAcquired && u.State == protocol.TaskAcquired && t.lease != u.lease
		return !extended || ok && heartbeat.PID == *t.PID && slices.Contains(heartbeat.Tasks, protocol.TaskRef{ID: t.ID, Version: t.Version})
	},
	"fence_acts_for_the_holder": func(c *change, t, u taskView, old bool) bool {
		fence, ok := c.op.(protocol.TaskFence)
		held := old && t.State == protocol.TaskAcquired && t.Version == fence.Version && c.a.promises[t.ID].live(c.now)
		return !ok || fence.ID != u.ID || held || reflect.DeepEqual(c.a, c.b)
	},
}

var taskEdges = map[protocol.TaskState][]protocol.TaskState{
	protocol.TaskPending:   {protocol.TaskAcquired, protocol.TaskHalted, protocol.TaskFulfilled},
	protocol.TaskAcquired:  {protocol.TaskPending, protocol.TaskSuspended, protocol.TaskHalted, protocol.TaskFulfilled},
	protocol.TaskSuspended: {protocol.TaskPending, protocol.TaskHalted, protocol.TaskFulfilled},
	protocol.TaskHalted:    {protocol.TaskPending, protocol.TaskFulfilled},
}

var internalTaskEdges = map[protocol.TaskState][]protocol.TaskState{
	protocol.TaskPending:   {protocol.TaskFulfilled},
	protocol.TaskAcquired:  {protocol.TaskPending, protocol.TaskFulfilled},
	protocol.TaskSuspended: {protocol.TaskPending, protocol.TaskFulfilled},
	protocol.TaskHalted:    {protocol.TaskFulfilled},
}

var stepProperties = map[string]func(c *change) bool{
	"monotone_promise_set_grows": func(c *change) bool {
		return contains(c.b.promises, c.a.promises)
	},
	"monotone_task_set_grows": func(c *change) bool {
		return contains(c.b.tasks, c.a.tasks)
	},
	// a message disappears when it was delivered, or with a report
	"monotone_outbox_keys_never_disappear": func(c *change) bool {
		for m := range c.a.outbox {
			delivered := c.op == core.Delivered{Promise: m.promise, Address: m.address}
			if _, kept := c.b.outbox[m]; !kept && !delivered && !c.dropped(m) {
				return false
			}
		}
		return true
	},
	"consistent_new_execute_matches_task_and_target": func(c *change) bool {
		for _, e := range c.effects {
			if ref := e.Message.Execute; ref != nil {
				u := c.b.tasks[ref.ID]
				if u.State != protocol.TaskPending || u.Version != ref.Version || e.Address != c.b.promises[ref.ID].Tags[protocol.TagTarget] {
					return false
				}
			}
		}
		return true
	},
	"preserved_execute_only_for_live_task": func(c *change) bool {
		for _, e := range c.effects {
			if e.Message.Execute != nil && !c.b.promises[e.Message.Execute.ID].live(c.now) {
				return false
			}
		}
		return true
	},
	"consistent_new_unblock_carries_stored_record": func(c *change) bool {
		for _, e := range c.effects {
			if p := e.Message.Unblock; p != nil && !reflect.DeepEqual(*p, c.b.promises[p.ID].Promise) {
				return false
			}
		}
		return true
	},
	"consistent_new_unblock_discharges_its_listener": func(c *change) bool {
		for _, e := range c.effects {
			if p := e.Message.Unblock; p != nil && !e.Dropped {
				if !c.a.promises[p.ID].listeners[e.Address] || c.b.promises[p.ID].listeners[e.Address] {
					return false
				}
			}
		}
		return true
	},
	// not a property of the specification: what is sent is what is stored
	"unblock_messages_are_stored_until_delivered": func(c *change) bool {
		for _, e := range c.effects {
			if p := e.Message.Unblock; p != nil && !e.Dropped && !c.dropped(message{p.ID, e.Address}) {
				if _, stored := c.b.outbox[message{p.ID, e.Address}]; !stored {
					return false
				}
			}
		}
		return true
	},
}

// sent counts the unblock messages of a step for a listener.
func (c *change) sent(promise, address string) int {
	n := 0
	for _, e := range c.effects {
		if p := e.Message.Unblock; p != nil && !e.Dropped && p.ID == promise && e.Address == address {
			n++
		}
	}
	return n
}

func (c *change) dropped(m message) bool {
	return slices.ContainsFunc(c.effects, func(e core.Effect) bool {
		return e.Dropped && e.Message.Unblock.ID == m.promise && e.Address == m.address
	})
}

func subset(a, b map[string]bool) bool {
	for key := range a {
		if !b[key] {
			return false
		}
	}
	return true
}

func contains[V any](all, some map[string]V) bool {
	for id := range some {
		if _, ok := all[id]; !ok {
			return false
		}
	}
	return true
}
