package core_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/script"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestTranscripts runs the scripts in testdata/transcript. Their output shows the answer to each
// operation and the messages to send; read them to see how promises and tasks work.
// After each operation all invariants are checked. "go test -update" writes the output.
func TestTranscripts(t *testing.T) {
	script.Run(t, "testdata/transcript/*.txt", func(t *testing.T) func([]string) ([]string, error) {
		return (&transcript{world: newWorld(t, core.Config{})}).line
	})
}

// transcript runs the commands of a transcript. An operation is its kind, and then its
// fields as name=value. A field with a comma in it is a list. The names are those of the
// protocol. Names with a colon are tags; t:, b:, o: and p: are short for the target, the
// branch, the origin and the parent. Other commands are
//
//	config retry=MS keep=N age=MS strict=true
//	                         begin with an empty store and other settings
//	wall MS, run MS          set one of the clocks
//	at MS                    set both clocks
//	tick [LIMIT]             process timeouts
//	delivered PROMISE ADDRESS
//	next                     print when something is due
//	unblocks ADDRESS         print undelivered messages
//	executes                 print the messages to send at a start
type transcript struct {
	*world
	lines []string
}

func (c *transcript) print(format string, args ...any) {
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

func (c *transcript) line(words []string) (lines []string, err error) {
	c.lines = nil
	switch words[0] {
	case "config", "wall", "run", "at", "next", "unblocks", "executes":
		err = c.control(words)
	case "tick":
		op := core.Tick{}
		if len(words) > 1 {
			op.Limit = number(words[1])
		}
		c.show(op)
	case "delivered":
		c.show(core.Delivered{Promise: words[1], Address: words[2]})
	default:
		var op protocol.Operation
		if op, err = operation(words[0], parse(words[1:])); err == nil {
			c.show(op)
		}
	}
	return c.lines, err
}

func (c *transcript) control(words []string) error {
	switch words[0] {
	case "config":
		f := parse(words[1:])
		c.world = newWorld(c.t, core.Config{
			RetryTimeout: f.number("retry"), UnblocksMax: int(f.number("keep")), UnblockAge: f.number("age"), Strict: f["strict"] == "true",
		})
	case "at":
		c.at(int64(number(words[1])))
	case "wall":
		c.now.Wall = int64(number(words[1]))
	case "run":
		c.now.Run = int64(number(words[1]))
	case "next":
		wait, ok := core.Next(c.kv, c.now)
		c.print("%d ms, %t", wait, ok)
	case "unblocks":
		for e, err := range core.Unblocks(c.kv, words[1]) {
			if err != nil {
				return err
			}
			c.effect(e)
		}
	case "executes":
		for e, err := range core.Executes(c.kv, c.now) {
			if err != nil {
				return err
			}
			c.effect(e)
		}
	}
	return nil
}

// show carries out an operation and prints its answer and the messages.
func (c *transcript) show(op protocol.Operation) {
	c.t.Helper()
	r, effects := c.do(op)
	c.result(r)
	for _, e := range effects {
		c.effect(e)
	}
}

func (c *transcript) result(r protocol.Result) {
	words := []string{strconv.Itoa(r.Status)}
	if r.Error != "" {
		words = append(words, r.Error)
	}
	if r.More {
		words = append(words, "more")
	}
	c.print("%s", strings.Join(words, " "))
	if r.Task != nil {
		c.print("task %s", task(*r.Task))
	}
	if r.Promise != nil {
		c.print("promise %s", promise(*r.Promise))
	}
	if r.Schedule != nil {
		c.print("schedule %s", schedule(*r.Schedule))
	}
	for _, p := range r.Preload {
		c.print("preload %s", promise(p))
	}
	for _, p := range r.Promises {
		c.print("promise %s", promise(p))
	}
	for _, t := range r.Tasks {
		c.print("task %s", task(t))
	}
	for _, s := range r.Schedules {
		c.print("schedule %s", schedule(s))
	}
	if r.Cursor != "" {
		c.print("cursor %s", r.Cursor)
	}
	if r.Snapshot != nil {
		c.snapshot(r.Snapshot)
	}
	if r.Action != nil {
		c.print("action:")
		c.result(*r.Action)
	}
}

func (c *transcript) snapshot(s *protocol.Snapshot) {
	for _, p := range s.Promises {
		c.print("promise %s", promise(p))
	}
	for _, p := range s.PromiseTimeouts {
		c.print("promise timeout %s at %d", p.ID, p.Timeout)
	}
	for _, b := range s.Callbacks {
		c.print("callback of %s for %s", b.Awaited, b.Awaiter)
	}
	for _, l := range s.Listeners {
		c.print("listener of %s at %s", l.ID, l.Address)
	}
	for _, t := range s.Tasks {
		c.print("task %s", task(t))
	}
	for _, t := range s.TaskTimeouts {
		c.print("task timeout %s at %d, %s", t.ID, t.Timeout, []string{"retry", "lease"}[t.Type])
	}
	for _, m := range s.Messages {
		c.print("message to %s", envelope(m.Address, m.Message))
	}
}

func (c *transcript) effect(e core.Effect) {
	verb := "->"
	if e.Dropped {
		verb = "dropped:"
	}
	c.print("%s %s", verb, envelope(e.Address, e.Message))
}

func envelope(address string, m protocol.Message) string {
	if m.Execute != nil {
		return fmt.Sprintf("%s execute %s v%d", address, m.Execute.ID, m.Execute.Version)
	}
	return fmt.Sprintf("%s unblock %s", address, promise(*m.Unblock))
}

func promise(p protocol.Promise) string {
	s := fmt.Sprintf("%s: %s, created %d, timeout %d", p.ID, p.State, p.CreatedAt, p.TimeoutAt)
	if p.SettledAt != nil {
		s += fmt.Sprintf(", settled %d", *p.SettledAt)
	}
	return s + value(", param", p.Param) + value(", value", p.Value)
}

func value(name string, v protocol.Value) string {
	if v.Data == nil {
		return ""
	}
	return name + " " + *v.Data
}

func task(t protocol.Task) string {
	s := fmt.Sprintf("%s: %s v%d", t.ID, t.State, t.Version)
	if t.PID != nil {
		s += fmt.Sprintf(", held by %s for %d ms", *t.PID, *t.TTL)
	}
	if len(t.Resumes) > 0 {
		s += ", resumed by " + strings.Join(t.Resumes, " ")
	}
	return s
}

func schedule(s protocol.Schedule) string {
	line := fmt.Sprintf("%s: %s, created %d, next %d", s.ID, s.Cron, s.CreatedAt, s.NextRunAt)
	if s.LastRunAt != nil {
		line += fmt.Sprintf(", last %d", *s.LastRunAt)
	}
	return line
}

// fields are the words of a command after the first.
type fields map[string]string

func parse(words []string) fields {
	f := fields{}
	for _, w := range words {
		name, v, _ := strings.Cut(w, "=")
		f[name] = v
	}
	return f
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func (f fields) number(name string) int64 {
	if f[name] == "" {
		return 0
	}
	n, err := strconv.ParseInt(f[name], 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func (f fields) list(name string) []string {
	if f[name] == "" {
		return nil
	}
	return strings.Split(f[name], ",")
}

func (f fields) value(name string) protocol.Value {
	if v, ok := f[name]; ok {
		return protocol.Value{Data: &v}
	}
	return protocol.Value{}
}

var shortTags = map[string]string{
	"t:": protocol.TagTarget, "b:": protocol.TagBranch, "o:": protocol.TagOrigin, "p:": protocol.TagParent,
	"scope:": protocol.TagScope, "timer:": protocol.TagTimer, "external:": protocol.TagExternal, "delay:": protocol.TagDelay,
}

func (f fields) tags() map[string]string {
	tags := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if key, ok := shortTags[name]; ok {
			tags[key] = f[name]
		} else if key, ok := strings.CutSuffix(name, ":"); ok {
			tags[key] = f[name]
		}
	}
	return tags
}

func (f fields) create(id string) protocol.PromiseCreate {
	return protocol.PromiseCreate{ID: id, TimeoutAt: f.number("timeoutAt"), Param: f.value("param"), Tags: f.tags(), Origin: f["origin"]}
}

func (f fields) settle(id string) protocol.PromiseSettle {
	state := protocol.PromiseState(f["state"])
	if state == "" {
		state = protocol.Resolved
	}
	return protocol.PromiseSettle{ID: id, State: state, Value: f.value("value")}
}

// operation returns the operation of a kind. Its id is the field without a value.
func operation(kind string, f fields) (protocol.Operation, error) {
	id := ""
	for name, v := range f {
		if v == "" && !strings.HasSuffix(name, ":") && name != "pid" {
			id = name
		}
	}
	version := f.number("version")
	switch kind {
	case "promise.get":
		return protocol.PromiseGet{ID: id}, nil
	case "promise.create":
		return f.create(id), nil
	case "promise.settle":
		return f.settle(id), nil
	case "promise.register_callback":
		return protocol.RegisterCallback{Awaited: f["awaited"], Awaiter: f["awaiter"]}, nil
	case "promise.register_listener":
		return protocol.RegisterListener{Awaited: f["awaited"], Address: f["address"]}, nil
	case "promise.search":
		return protocol.PromiseSearch{State: protocol.PromiseState(f["state"]), Tags: f.tags(), Limit: int(f.number("limit")), Cursor: f["cursor"]}, nil
	case "task.get":
		return protocol.TaskGet{ID: id}, nil
	case "task.create":
		return protocol.TaskCreate{PID: f["pid"], TTL: f.number("ttl"), Action: f.create(id)}, nil
	case "task.acquire":
		return protocol.TaskAcquire{ID: id, Version: version, PID: f["pid"], TTL: f.number("ttl")}, nil
	case "task.release":
		return protocol.TaskRelease{ID: id, Version: version}, nil
	case "task.fulfill":
		return protocol.TaskFulfill{ID: id, Version: version, Action: f.settle(id)}, nil
	case "task.suspend":
		op := protocol.TaskSuspend{ID: id, Version: version}
		for _, awaited := range f.list("awaited") {
			op.Actions = append(op.Actions, protocol.RegisterCallback{Awaited: awaited, Awaiter: id})
		}
		return op, nil
	case "task.fence":
		op := protocol.TaskFence{ID: id, Version: version}
		if other, ok := f["create"]; ok {
			op.Action = f.create(other)
		} else {
			op.Action = f.settle(f["settle"])
		}
		return op, nil
	case "task.heartbeat":
		op := protocol.TaskHeartbeat{PID: f["pid"]}
		for _, ref := range f.list("tasks") {
			name, version, _ := strings.Cut(ref, "@")
			op.Tasks = append(op.Tasks, protocol.TaskRef{ID: name, Version: int64(number(version))})
		}
		return op, nil
	case "task.halt":
		return protocol.TaskHalt{ID: id}, nil
	case "task.continue":
		return protocol.TaskContinue{ID: id}, nil
	case "task.search":
		return protocol.TaskSearch{State: protocol.TaskState(f["state"]), Limit: int(f.number("limit")), Cursor: f["cursor"]}, nil
	}
	return otherOperation(kind, id, f)
}

func otherOperation(kind, id string, f fields) (protocol.Operation, error) {
	switch kind {
	case "schedule.get":
		return protocol.ScheduleGet{ID: id}, nil
	case "schedule.create":
		return protocol.ScheduleCreate{
			ID: id, Cron: strings.ReplaceAll(f["cron"], "_", " "), PromiseID: f["promiseId"], PromiseTimeout: f.number("promiseTimeout"),
			PromiseParam: f.value("param"), PromiseTags: f.tags(),
		}, nil
	case "schedule.delete":
		return protocol.ScheduleDelete{ID: id}, nil
	case "schedule.search":
		return protocol.ScheduleSearch{Tags: f.tags(), Limit: int(f.number("limit")), Cursor: f["cursor"]}, nil
	case "debug.reset":
		return protocol.DebugReset{}, nil
	case "debug.snap":
		return protocol.DebugSnap{}, nil
	case "debug.tick":
		return protocol.DebugTick{Time: f.number("time")}, nil
	}
	return nil, errors.New("unknown command " + kind)
}
