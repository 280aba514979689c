package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// quick carries out an operation without checks, for large stores.
func (w *world) quick(op protocol.Operation) protocol.Result {
	w.t.Helper()
	r, _ := w.c.Step(w.kv, op, w.now)
	if r.Status >= 400 {
		w.t.Fatalf("%s %+v: %d %s", op.Kind(), op, r.Status, r.Error)
	}
	return r
}

// fewer divides the size of a test, except in a long run.
func fewer(t *testing.T, n int) int {
	t.Helper()
	return n / speed.Pick(t, 50, 10, 1)
}

// TestManyTimeouts lets thousands of promises expire at once. Each Tick does a part of the work.
func TestManyTimeouts(t *testing.T) {
	w := defaults(t).at(1000)
	promises := fewer(t, 100_000)
	for i := range promises {
		w.quick(protocol.PromiseCreate{ID: fmt.Sprint(i), TimeoutAt: 5000, Tags: external()})
	}
	w.at(5000)
	ticks := 0
	for more := true; more; ticks++ {
		writes := w.kv.writes
		more = w.quick(core.Tick{}).More
		if writes = w.kv.writes - writes; writes > 5*core.TickLimitDefault {
			t.Fatalf("a tick has written %d times", writes)
		}
	}
	if ticks != promises/core.TickLimitDefault {
		t.Errorf("%d ticks", ticks)
	}
	if violations := core.Check(w.kv, w.now); violations != nil {
		t.Error(violations)
	}
}

// TestScheduleOfEverySecondAfterADay checks that a schedule with 86,400 missed occurrences
// catches up in bounded steps, creates each promise once, and does not delay another one.
func TestScheduleOfEverySecondAfterADay(t *testing.T) {
	w := newWorld(t, core.Config{MissedMax: 100_000}).at(0)
	schedule := protocol.ScheduleCreate{ID: "second", Cron: "* * * * * *", PromiseID: "{{.id}}-{{.timestamp}}", PromiseTimeout: 3600_000, PromiseTags: targeted()}
	w.must(schedule)
	schedule.ID, schedule.Cron = "hour", "0 * * * *"
	w.must(schedule)
	day := speed.Pick(t, 2, 3, 24) * 3600
	w.at(int64(day) * 1000)
	ticks, hours := 0, 0
	for more := true; more; ticks++ {
		before := w.kv.tables[core.Promises].Len()
		more = w.quick(core.Tick{}).More
		if created := w.kv.tables[core.Promises].Len() - before; created > core.TickLimitDefault {
			t.Fatalf("a tick has created %d promises", created)
		}
		if hours < day/3600 {
			next := w.quick(protocol.ScheduleGet{ID: "second"}).Schedule.NextRunAt
			other := w.quick(protocol.ScheduleGet{ID: "hour"}).Schedule.NextRunAt
			if next > other+200_000 { // 100 occurrences in a row
				t.Fatalf("the schedule of every second is at %d, and the other one at %d", next, other)
			}
			hours = int(other / 3600_000)
		}
	}
	if n := w.kv.tables[core.Promises].Len(); n != day+day/3600 {
		t.Errorf("there are %d promises, want %d", n, day+day/3600)
	}
	if ticks < day/core.TickLimitDefault || ticks > 2*day/core.TickLimitDefault {
		t.Errorf("%d ticks", ticks)
	}
	pending := 0
	for op := (protocol.PromiseSearch{State: protocol.Pending, Limit: 1000}); ; {
		r := w.quick(op)
		pending += len(r.Promises)
		if op.Cursor = r.Cursor; op.Cursor == "" {
			break
		}
	}
	if pending != 3600+1 { // the deadlines of the occurrences of the last hour are still ahead
		t.Errorf("%d promises are pending", pending)
	}
	if violations := core.Check(w.kv, w.now); violations != nil {
		t.Error(violations)
	}
}

// TestSchedulesAfterAYear checks that a schedule makes up for the newest of the occurrences
// that it has missed, in bounded steps, and goes on from there.
func TestSchedulesAfterAYear(t *testing.T) {
	speed.NoRace(t)
	const year = 365 * 24 * 3600_000
	missedMax := speed.Pick(t, 500, core.MissedMaxDefault, core.MissedMaxDefault)
	for cron, period := range map[string]int64{"* * * * * *": 1_000, "* * * * *": 60_000, "0 * * * *": 3600_000, "0 0 * * *": 24 * 3600_000} {
		w := newWorld(t, core.Config{MissedMax: missedMax}).at(0)
		w.must(protocol.ScheduleCreate{ID: "s", Cron: cron, PromiseID: "{{.timestamp}}", PromiseTimeout: year, PromiseTags: targeted()})
		w.at(year + 1)
		due, ticks := int64(year)/period, 0
		var gaps []protocol.Gap
		for more := true; more; ticks++ {
			r := w.quick(core.Tick{})
			more, gaps = r.More, append(gaps, r.Gaps...)
		}
		want, from := due, period
		if due > int64(missedMax) {
			want, from = int64(missedMax), year-(int64(missedMax)-1)*period
			if len(gaps) != 1 || gaps[0] != (protocol.Gap{Schedule: "s", From: period, To: from}) {
				t.Errorf("%s: %+v", cron, gaps)
			}
		} else if gaps != nil {
			t.Errorf("%s: %+v", cron, gaps)
		}
		if n := w.kv.tables[core.Promises].Len(); int64(n) != want || ticks > int(want)/core.TickLimitDefault+2 {
			t.Errorf("%s: %d promises in %d ticks, want %d", cron, n, ticks, want)
		}
		for at := from; at <= year; at += period {
			w.quick(protocol.PromiseGet{ID: fmt.Sprint(at)})
		}
		if s := w.quick(protocol.ScheduleGet{ID: "s"}).Schedule; *s.LastRunAt != year || s.NextRunAt != year+period {
			t.Errorf("%s: %+v", cron, s)
		}
	}
}

// TestManyCallbacks checks that a callback costs the same with 100,000 others, and that the
// settlement resumes all tasks.
func TestManyCallbacks(t *testing.T) {
	w := defaults(t).at(1000)
	w.quick(protocol.PromiseCreate{ID: "job", TimeoutAt: 900_000, Tags: external()})
	tasks := fewer(t, 100_000)
	writes, size := 0, 0
	for i := range tasks {
		id := fmt.Sprintf("t%06d", i)
		w.quick(protocol.TaskCreate{PID: "w", TTL: 60_000, Action: protocol.PromiseCreate{ID: id, TimeoutAt: 900_000, Tags: targeted()}})
		before := w.kv.writes
		w.kv.written = 0
		w.quick(protocol.TaskSuspend{ID: id, Version: 1, Actions: []protocol.RegisterCallback{{Awaited: "job", Awaiter: id}}})
		if i == 0 {
			writes, size = w.kv.writes-before, w.kv.written
		} else if w.kv.writes-before != writes || w.kv.written != size {
			t.Fatalf("suspension %d has written %d times and %d bytes, the first one %d times and %d bytes", i, w.kv.writes-before, w.kv.written, writes, size)
		}
	}
	_, effects := w.c.Step(w.kv, settle("job"), w.now)
	if len(effects) != tasks {
		t.Errorf("%d messages were sent", len(effects))
	}
	if violations := core.Check(w.kv, w.now); violations != nil {
		t.Error(violations)
	}
}

// TestWritesPerOperation records how often an operation writes, because each write makes a
// page of the store dirty.
func TestWritesPerOperation(t *testing.T) {
	w := defaults(t).at(1000)
	sdk := func(id string) map[string]string { // the tags of a step in the TypeScript SDK
		return tags(protocol.TagScope, "local", protocol.TagBranch, "root", protocol.TagParent, "root", protocol.TagOrigin, "root")
	}
	root := tags(protocol.TagScope, "global", protocol.TagTarget, worker, protocol.TagBranch, "root", protocol.TagParent, "root", protocol.TagOrigin, "root")
	for _, step := range []struct {
		name   string
		op     protocol.Operation
		writes int
	}{
		{"create an internal promise", protocol.PromiseCreate{ID: "plain", TimeoutAt: 900_000}, 2},
		{"settle an internal promise", settle("plain"), 2},
		{"settle it again", settle("plain"), 0},
		{"create an external promise", protocol.PromiseCreate{ID: "external", TimeoutAt: 900_000, Tags: external()}, 3},
		{"settle an external promise", settle("external"), 3},
		{"create a workflow", protocol.PromiseCreate{ID: "root", TimeoutAt: 900_000, Tags: root}, 5},
		{"acquire its task", protocol.TaskAcquire{ID: "root", PID: "w", TTL: 10_000}, 3},
		{"create a step", protocol.TaskFence{ID: "root", Version: 1, Action: protocol.PromiseCreate{ID: "root:1", TimeoutAt: 900_000, Tags: sdk("root:1")}}, 3},
		{"settle a step", protocol.TaskFence{ID: "root", Version: 1, Action: settle("root:1")}, 2},
		{"fulfill the task", protocol.TaskFulfill{ID: "root", Version: 1, Action: settle("root")}, 5},
	} {
		before := w.kv.writes
		w.must(step.op)
		if n := w.kv.writes - before; n != step.writes {
			t.Errorf("%s: %d writes, want %d", step.name, n, step.writes)
		}
	}
}

// TestShapes refuses values beyond the limits, also from programs in the same process.
func TestShapes(t *testing.T) {
	w := defaults(t).at(1000)
	long := strings.Repeat("x", protocol.MaxID+1)
	big := strings.Repeat("x", 64<<20+1)
	invalid := "\xff"
	many := map[string]string{}
	for i := range protocol.MaxTags + 1 {
		many[fmt.Sprint(i)] = ""
	}
	create := func(change func(*protocol.PromiseCreate)) protocol.PromiseCreate {
		op := protocol.PromiseCreate{ID: "p", TimeoutAt: 5000}
		change(&op)
		return op
	}
	schedule := func(change func(*protocol.ScheduleCreate)) protocol.ScheduleCreate {
		op := protocol.ScheduleCreate{ID: "s", Cron: "* * * * *", PromiseID: "{{.id}}{{.timestamp}}", PromiseTags: targeted()}
		change(&op)
		return op
	}
	for i, op := range []protocol.Operation{
		create(func(c *protocol.PromiseCreate) { c.ID = long }),
		create(func(c *protocol.PromiseCreate) { c.ID = invalid }),
		create(func(c *protocol.PromiseCreate) { c.ID = "a\x00b" }),
		create(func(c *protocol.PromiseCreate) { c.TimeoutAt = protocol.MaxTime + 1 }),
		create(func(c *protocol.PromiseCreate) { c.Tags = many }),
		create(func(c *protocol.PromiseCreate) { c.Tags = tags(invalid, "") }),
		create(func(c *protocol.PromiseCreate) { c.Tags = tags("k", invalid) }),
		create(func(c *protocol.PromiseCreate) { c.Tags = tags("k", "a\x00b") }),
		create(func(c *protocol.PromiseCreate) { c.Param.Headers = tags("a\x00b", "") }),
		create(func(c *protocol.PromiseCreate) { c.Tags = tags(strings.Repeat("k", 257), "") }),
		create(func(c *protocol.PromiseCreate) { c.Tags = tags("k", strings.Repeat("k", 4097)) }),
		create(func(c *protocol.PromiseCreate) { c.Param.Data = &big }),
		create(func(c *protocol.PromiseCreate) { c.Param.Data = &invalid }),
		create(func(c *protocol.PromiseCreate) { c.Param.Headers = many }),
		create(func(c *protocol.PromiseCreate) { c.Origin = long }),
		protocol.PromiseGet{ID: ""}, protocol.TaskGet{ID: long}, protocol.TaskHalt{}, protocol.TaskContinue{}, protocol.ScheduleGet{}, protocol.ScheduleDelete{},
		protocol.TaskAcquire{ID: "p", Version: -1, PID: "w", TTL: 1}, protocol.TaskRelease{ID: "p", Version: 1 << 53},
		protocol.TaskHeartbeat{PID: "w", Tasks: make([]protocol.TaskRef, protocol.MaxActions+1)}, protocol.TaskHeartbeat{PID: "w", Tasks: []protocol.TaskRef{{}}}, protocol.TaskHeartbeat{},
		protocol.TaskSuspend{ID: "p", Actions: []protocol.RegisterCallback{{Awaited: "", Awaiter: "p"}}},
		protocol.TaskSuspend{ID: "p", Actions: []protocol.RegisterCallback{{Awaited: "q", Awaiter: "other"}}},
		protocol.TaskFence{ID: "p"}, protocol.TaskFence{ID: "p", Action: protocol.PromiseGet{ID: "q"}},
		protocol.TaskFulfill{ID: "p", Action: settle("q")}, protocol.TaskFulfill{ID: "p", Action: protocol.PromiseSettle{ID: "p"}},
		protocol.RegisterListener{Awaited: "p", Address: "http://" + long}, protocol.RegisterCallback{Awaited: "", Awaiter: "p"},
		protocol.PromiseSearch{Limit: -1}, protocol.TaskSearch{Limit: 1001}, protocol.ScheduleSearch{Tags: many}, protocol.ScheduleSearch{Cursor: "x"}, protocol.TaskSearch{Cursor: "cHI"},
		protocol.DebugTick{Time: -1},
		schedule(func(s *protocol.ScheduleCreate) { s.ID = strings.Repeat("x", protocol.MaxID-10) }),
		schedule(func(s *protocol.ScheduleCreate) { s.Cron = strings.Repeat(" ", protocol.MaxCron) + s.Cron }),
		schedule(func(s *protocol.ScheduleCreate) { s.PromiseParam.Data = &invalid }),
		&protocol.PromiseGet{ID: "p"}, // operations are values
	} {
		if r, _ := w.do(op); r.Status != protocol.BadRequest || r.Error == "" || len(r.Error) > 400 {
			t.Errorf("case %d, %s: status %d %s", i, op.Kind(), r.Status, r.Error)
		}
	}
	if w.kv.writes != 0 {
		t.Error("a refusal has written")
	}
}

func TestConfig(t *testing.T) {
	for _, config := range []core.Config{{RetryTimeout: -1}, {RetryTimeout: 1 << 62}, {UnblocksMax: -1}, {MissedMax: -1}, {UnblockAge: -1}, {UnblockAge: 1 << 62}} {
		if _, err := core.New(config); err == nil {
			t.Errorf("%+v was accepted", config)
		}
	}
}

// TestLeapDays checks a schedule whose next occurrence is 8 years away, and a schedule
// without further occurrences.
func TestLeapDays(t *testing.T) {
	w := defaults(t).at(3982262400000) // 2096-03-11
	r, _ := w.must(protocol.ScheduleCreate{ID: "s", Cron: "0 0 29 2 *", PromiseID: "{{.timestamp}}", PromiseTags: targeted()})
	if r.Schedule.NextRunAt != 4233686400000 { // 2104-02-29
		t.Errorf("the next occurrence is %d", r.Schedule.NextRunAt)
	}
	w.at(253370764800000) // the year 9999
	w.refused(protocol.ScheduleCreate{ID: "last", Cron: "0 0 1 1 *", PromiseID: "{{.timestamp}}", PromiseTags: targeted()}, 400)
	for _, at := range []int64{253402300800000, protocol.MaxTime} {
		if r, _ := w.must(protocol.DebugTick{Time: at}); r.More {
			t.Errorf("at %d there are more occurrences", at)
		}
	}
}
