package core

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// sorted is a KV that is small and slow.
type sorted [TableCount]map[string]string

func (m *sorted) Get(t Table, key []byte) []byte {
	if v, ok := m[t][string(key)]; ok {
		return []byte(v)
	}
	return nil
}

func (m *sorted) Put(t Table, key, value []byte) {
	if m[t] == nil {
		m[t] = map[string]string{}
	}
	m[t][string(key)] = string(value)
}

func (m *sorted) Delete(t Table, key []byte) { delete(m[t], string(key)) }

func (m *sorted) Ascend(t Table, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for _, key := range slices.Sorted(maps.Keys(m[t])) {
			if key >= string(from) && !yield([]byte(key), []byte(m[t][key])) {
				return
			}
		}
	}
}

// now is the time of the stores that these tests damage.
var now = Instant{Wall: 10_000, Run: 10_000}

// intact returns a store with promises and tasks in most states:
//
//	flow     a suspended task that waits for open
//	busy     an acquired task, resumed by done
//	waiting  a pending task
//	delayed  a pending task with a delay
//	ended    a fulfilled task
//	open     a pending external promise with a listener
//	done     a rejected external promise with an undelivered message
//	late     a promise that has timed out
//	s        a schedule
func intact(t *testing.T) *tx {
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	kv := new(sorted)
	do := func(op protocol.Operation) {
		t.Helper()
		if r, _ := c.Step(kv, op, now); r.Status >= 400 {
			t.Fatalf("%s: %d %s", op.Kind(), r.Status, r.Error)
		}
	}
	target := func(more ...string) map[string]string {
		tags := map[string]string{protocol.TagTarget: "poll://any@w"}
		for pair := range slices.Chunk(more, 2) {
			tags[pair[0]] = pair[1]
		}
		return tags
	}
	external := map[string]string{protocol.TagExternal: "true"}
	for _, id := range []string{"flow", "busy", "ended"} {
		do(protocol.TaskCreate{PID: "w", TTL: 1000, Action: protocol.PromiseCreate{ID: id, TimeoutAt: 90_000, Tags: target("color", "red")}})
	}
	do(protocol.PromiseCreate{ID: "waiting", TimeoutAt: 90_000, Tags: target()})
	do(protocol.PromiseCreate{ID: "delayed", TimeoutAt: 90_000, Tags: target(protocol.TagDelay, "50000")})
	do(protocol.PromiseCreate{ID: "open", TimeoutAt: 90_000, Tags: external})
	do(protocol.PromiseCreate{ID: "done", TimeoutAt: 90_000, Tags: external})
	do(protocol.PromiseCreate{ID: "late", TimeoutAt: 5_000, Tags: external})
	do(protocol.RegisterListener{Awaited: "open", Address: "poll://any@c"})
	do(protocol.RegisterListener{Awaited: "done", Address: "poll://any@c"})
	do(protocol.TaskSuspend{ID: "busy", Version: 1, Actions: []protocol.RegisterCallback{{Awaited: "done", Awaiter: "busy"}}})
	do(protocol.TaskSuspend{ID: "flow", Version: 1, Actions: []protocol.RegisterCallback{{Awaited: "open", Awaiter: "flow"}}})
	do(protocol.PromiseSettle{ID: "done", State: protocol.Rejected})
	do(protocol.TaskFulfill{ID: "ended", Version: 1, Action: protocol.PromiseSettle{ID: "ended", State: protocol.Resolved}})
	do(protocol.ScheduleCreate{ID: "s", Cron: "* * * * *", PromiseID: "{{.timestamp}}", PromiseTags: target()})
	if violations := Check(kv, now); violations != nil {
		t.Fatal(violations)
	}
	return &tx{kv: kv}
}

// changePromise and changeTask rewrite a record and nothing else.
func (x *tx) changePromise(id string, change func(*promise)) {
	p := x.promise(id)
	p.birth = ""
	change(p)
	x.putPromise(p)
}

func (x *tx) changeTask(id string, change func(*task)) {
	t := x.task(id)
	change(t)
	x.putTask(t)
}

func (x *tx) remove(t Table, key string) { x.kv.Delete(t, []byte(key)) }

func (x *tx) removeTime(t Table, at int64, id string) { x.kv.Delete(t, timeKey(nil, at, id)) }

// TestCheckFindsEachViolation breaks each invariant once, and nothing else if possible.
func TestCheckFindsEachViolation(t *testing.T) {
	data := "x"
	for name, damage := range map[string]func(x *tx){
		// the 13 invariants of the recovery protocol
		"orphan_invokes":                    func(x *tx) { x.remove(Tasks, "waiting"); x.removeTime(TaskTimeouts, 40_000, "waiting") },
		"missing_ptimeout":                  func(x *tx) { x.removeTime(PromiseTimeouts, 90_000, "open") },
		"stale_ptimeout":                    func(x *tx) { x.markTime(PromiseTimeouts, 90_000, "done") },
		"timedout_settled_at_mismatch":      func(x *tx) { x.changePromise("late", func(p *promise) { p.settledAt-- }) },
		"listener_for_settled_promise":      func(x *tx) { x.markPair(Listeners, "done", "poll://any@c") },
		"orphan_tasks":                      func(x *tx) { x.putTask(&task{id: "none", state: taskFulfilled}) },
		"pending_task_no_ttimeout":          func(x *tx) { x.removeTime(TaskTimeouts, 40_000, "waiting") },
		"acquired_task_no_lease":            func(x *tx) { x.changeTask("waiting", func(t *task) { t.enter(taskAcquired); t.pid, t.ttl = "w", 1 }) },
		"suspended_no_callback":             func(x *tx) { x.unmarkPair(Callbacks, "open", "flow") },
		"suspended_with_consumed_callbacks": func(x *tx) { x.markPair(Resumes, "flow", "done") },
		"suspended_task_has_ttimeout":       func(x *tx) { x.markTime(TaskTimeouts, 40_000, "flow") },
		"fulfilled_task_has_ttimeout":       func(x *tx) { x.markTime(TaskTimeouts, 40_000, "ended") },
		"callback_awaiter_no_target":        func(x *tx) { x.markPair(Callbacks, "open", "done") },
		// of the formal specification
		"well_formed_promise_created_at_lte_timeout_at":          func(x *tx) { x.changePromise("late", func(p *promise) { p.createdAt = 5_001 }) },
		"well_formed_promise_created_at_lte_now":                 func(x *tx) { x.changePromise("open", func(p *promise) { p.createdAt = 10_001 }) },
		"well_formed_promise_pending_created_before_deadline":    func(x *tx) { x.changePromise("open", func(p *promise) { p.createdAt = 90_000 }) },
		"well_formed_promise_pending_has_no_value":               func(x *tx) { x.changePromise("open", func(p *promise) { p.value.Data = &data }) },
		"well_formed_promise_settled_at_lte_timeout_at":          func(x *tx) { x.changePromise("late", func(p *promise) { p.settledAt++ }) },
		"well_formed_promise_created_at_lte_settled_at":          func(x *tx) { x.changePromise("done", func(p *promise) { p.settledAt-- }) },
		"well_formed_promise_settled_at_lte_now":                 func(x *tx) { x.changePromise("done", func(p *promise) { p.settledAt++ }) },
		"well_formed_promise_deadline_verdict_matches_timer_tag": func(x *tx) { x.changePromise("late", func(p *promise) { p.state = resolved }) },
		"well_formed_promise_deadline_settlement_has_no_value":   func(x *tx) { x.changePromise("late", func(p *promise) { p.value.Data = &data }) },
		"well_formed_promise_obligations_require_external": func(x *tx) {
			x.putPromise(&promise{id: "in", promiseHead: promiseHead{timeoutAt: 1}})
			x.markPair(Callbacks, "in", "flow")
		},
		"well_formed_promise_awaiter_is_not_self":         func(x *tx) { x.markPair(Callbacks, "flow", "flow") },
		"well_formed_task_acquired_version_positive":      func(x *tx) { x.changeTask("waiting", func(t *task) { t.state = taskAcquired }) },
		"well_formed_task_acquired_iff_has_pid":           func(x *tx) { x.changeTask("waiting", func(t *task) { t.state = taskAcquired }) },
		"well_formed_task_fulfilled_is_cleared":           func(x *tx) { x.markPair(Resumes, "ended", "done") },
		"well_formed_schedule_created_at_lte_next_run_at": func(x *tx) { x.changeSchedule(func(s *protocol.Schedule) { s.CreatedAt = 70_000 }) },
		"well_formed_schedule_created_at_lte_last_run_at": func(x *tx) { x.changeSchedule(func(s *protocol.Schedule) { s.LastRunAt = new(int64) }) },
		"well_formed_schedule_last_run_at_lt_next_run_at": func(x *tx) { x.changeSchedule(func(s *protocol.Schedule) { s.LastRunAt = &s.NextRunAt }) },
		"consistent_task_iff_targeted_promise":            func(x *tx) { x.remove(Tasks, "ended") },
		"consistent_settled_promise_has_fulfilled_task":   func(x *tx) { x.changeTask("ended", func(t *task) { t.enter(taskHalted) }) },
		"consistent_settled_task_promise_settled":         func(x *tx) { x.changeTask("flow", func(t *task) { t.enter(taskFulfilled) }) },
		"consistent_listener_addresses_deliverable":       func(x *tx) { x.markPair(Listeners, "open", "c") },
		"consistent_outbox_unblock_names_settled_promise": func(x *tx) { x.changePromise("done", func(p *promise) { p.state = pending }) },
		"consistent_outbox_unblock_address_deliverable":   func(x *tx) { x.putMessage("c") },
		// of the tables
		"callback_for_settled_promise": func(x *tx) { x.markPair(Callbacks, "done", "flow") },
		"promise_state_unindexed":      func(x *tx) { x.remove(PromiseStates, "bopen") },
		"stale_promise_state":          func(x *tx) { x.key = append(x.key[:0], "copen"...); x.mark(PromiseStates, x.key) },
		"promise_tag_unindexed":        func(x *tx) { x.remove(PromiseTags, "color\x00red\x00flow") },
		"stale_promise_tag":            func(x *tx) { x.key = append(x.key[:0], "color\x00blue\x00flow"...); x.mark(PromiseTags, x.key) },
		"task_differs_from_promise":    func(x *tx) { x.changeTask("flow", func(t *task) { t.address = "poll://any@x" }) },
		"task_resumes_mismatch":        func(x *tx) { x.changeTask("flow", func(t *task) { t.resumed = true }) },
		"stale_ttimeout":               func(x *tx) { x.markTime(TaskTimeouts, 40_001, "waiting") },
		"resume_of_pending_promise":    func(x *tx) { x.markPair(Resumes, "busy", "open") },
		"schedule_unindexed":           func(x *tx) { x.removeTime(ScheduleTimes, 60_000, "s") },
		"stale_schedule_time":          func(x *tx) { x.markTime(ScheduleTimes, 60_001, "s") },
		"outbox_size_mismatch":         func(x *tx) { x.remove(OutboxSizes, "poll://any@c") },
		"message_without_expiry":       func(x *tx) { x.kv.(*sorted)[OutboxAges] = nil },
		"stale_outbox_age":             func(x *tx) { x.markTime(OutboxAges, 1<<40, "poll://any@c") },
		"corrupt":                      func(x *tx) { x.kv.Put(Promises, []byte("open"), []byte("damaged")) },
	} {
		t.Run(name, func(t *testing.T) {
			x := intact(t)
			damage(x)
			violations := Check(x.kv, now)
			if !slices.ContainsFunc(violations, func(v Violation) bool {
				return v.Invariant == name && v.ID != "" && v.Detail != "" && strings.Contains(v.String(), v.ID)
			}) {
				t.Errorf("%s is broken, and Check finds %v", name, violations)
			}
		})
	}
}

func (x *tx) changeSchedule(change func(*protocol.Schedule)) {
	s := x.schedule("s")
	change(s)
	x.key = append(x.key[:0], "s"...)
	x.put(Schedules, x.key, appendSchedule(x.body[:0], s))
}

func (x *tx) putMessage(address string) {
	x.key = outboxKey(x.key[:0], address, 0)
	x.put(Outbox, x.key, append(x.body[:0], "\x01done"...))
}

// TestNoSecretOfAnAddress: violations and errors show no query of an address, which may have a token.
func TestNoSecretOfAnAddress(t *testing.T) {
	const address = "http://host/path?token=s3cret"
	for name, damage := range map[string]func(x *tx){
		"message":           func(x *tx) { x.putMessage(address) },
		"malformed address": func(x *tx) { x.putMessage("ftp://host/path?token=s3cret") },
		"message too early": func(x *tx) { x.putMessage(address); x.changePromise("done", func(p *promise) { p.state = pending }) },
		"listener":          func(x *tx) { x.markPair(Listeners, "open", "ftp://host/path?token=s3cret") },
		"age":               func(x *tx) { x.markTime(OutboxAges, 1<<40, address) },
		"message without promise": func(x *tx) {
			x.key = outboxKey(x.key[:0], address, 0)
			x.put(Outbox, x.key, nil)
		},
		"damaged size": func(x *tx) { x.kv.Put(OutboxSizes, []byte(address), []byte("damaged")) },
	} {
		t.Run(name, func(t *testing.T) {
			x := intact(t)
			damage(x)
			violations := Check(x.kv, now)
			if text := fmt.Sprint(violations); len(violations) == 0 || strings.Contains(text, "s3cret") {
				t.Errorf("Check finds %v", text)
			}
		})
	}
}

// TestCheckIsBounded checks that a store with many violations makes a short list.
func TestCheckIsBounded(t *testing.T) {
	x := &tx{kv: new(sorted)}
	for i := range 3 * violationsMax {
		x.markTime(PromiseTimeouts, int64(i), "p")
	}
	if n := len(Check(x.kv, now)); n != violationsMax {
		t.Errorf("%d violations", n)
	}
}
