package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Short forms for tests. They fail the test unless the operation is accepted.

const worker = "poll://any@w"

// tags builds tags from pairs.
func tags(pairs ...string) map[string]string {
	m := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		m[pair[0]] = pair[1]
	}
	return m
}

func targeted() map[string]string { return tags(protocol.TagTarget, worker) }
func external() map[string]string { return tags(protocol.TagExternal, "true") }

// must carries out an operation that must be accepted, and returns the answer and the
// messages in short form.
func (w *world) must(op protocol.Operation) (protocol.Result, string) {
	w.t.Helper()
	r, effects := w.do(op)
	if r.Status >= 400 {
		w.t.Fatalf("%s %+v: %d %s", op.Kind(), op, r.Status, r.Error)
	}
	return r, messages(effects)
}

// refused carries out an operation that must be refused with a status.
func (w *world) refused(op protocol.Operation, status int) {
	w.t.Helper()
	if r, effects := w.do(op); r.Status != status || r.Error == "" || effects != nil {
		w.t.Fatalf("%s %+v: %d %s, with messages %s, want status %d", op.Kind(), op, r.Status, r.Error, messages(effects), status)
	}
}

func messages(effects []core.Effect) string {
	var words []string
	for _, e := range effects {
		if e.Message.Execute != nil {
			words = append(words, fmt.Sprintf("execute %s v%d", e.Message.Execute.ID, e.Message.Execute.Version))
		} else {
			words = append(words, "unblock "+e.Message.Unblock.ID)
		}
	}
	return strings.Join(words, ", ")
}

func (w *world) create(id string, timeoutAt int64, tags map[string]string) string {
	w.t.Helper()
	_, sent := w.must(protocol.PromiseCreate{ID: id, TimeoutAt: timeoutAt, Tags: tags})
	return sent
}

func (w *world) acquire(id string, version int64) {
	w.t.Helper()
	w.must(protocol.TaskAcquire{ID: id, Version: version, PID: "w1", TTL: 10_000})
}

func (w *world) suspend(id string, version int64, awaited ...string) int {
	w.t.Helper()
	op := protocol.TaskSuspend{ID: id, Version: version}
	for _, a := range awaited {
		op.Actions = append(op.Actions, protocol.RegisterCallback{Awaited: a, Awaiter: id})
	}
	r, _ := w.must(op)
	return r.Status
}

func settle(id string) protocol.PromiseSettle {
	return protocol.PromiseSettle{ID: id, State: protocol.Resolved}
}

// tick processes the timeouts that are due and returns the messages.
func (w *world) tick() string {
	w.t.Helper()
	r, sent := w.must(core.Tick{})
	if r.More {
		w.t.Fatal("more timeouts are due after a tick")
	}
	return sent
}

func (w *world) sends(got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Fatalf("sent %q, want %q", got, want)
	}
}

func (w *world) task(id string) protocol.Task {
	w.t.Helper()
	r, _ := w.must(protocol.TaskGet{ID: id})
	return *r.Task
}

func (w *world) promise(id string) protocol.Promise {
	w.t.Helper()
	r, _ := w.must(protocol.PromiseGet{ID: id})
	return *r.Promise
}

// isTask checks state and version of a task, as an answer shows them.
func (w *world) isTask(id string, state protocol.TaskState, version int64) {
	w.t.Helper()
	if got := w.task(id); got.State != state || got.Version != version {
		w.t.Fatalf("task %s is %s v%d, want %s v%d", id, got.State, got.Version, state, version)
	}
}

func defaults(t testing.TB) *world { return newWorld(t, core.Config{}) }
