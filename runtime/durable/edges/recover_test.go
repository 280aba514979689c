package edges

import (
	"log/slog"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/local"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestRecover releases the tasks of earlier processes that had the store, and leaves alone those
// of this process and of programs outside.
func TestRecover(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	server, err := local.New(core.Config{}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	do := func(op protocol.Operation) protocol.Result {
		t.Helper()
		r, err := server.Do(t.Context(), op)
		if err != nil || r.Status != protocol.OK {
			t.Fatal(r, err)
		}
		return r
	}
	states := map[string]protocol.TaskState{
		ownerPrefix + "now":    protocol.TaskAcquired,
		ownerPrefix + "before": protocol.TaskPending,
		"a program outside":    protocol.TaskAcquired,
	}
	for pid := range states {
		do(protocol.TaskCreate{PID: pid, TTL: 60_000, Action: protocol.PromiseCreate{ID: pid, TimeoutAt: now.Add(time.Hour).UnixMilli(), Tags: map[string]string{protocol.TagTarget: "poll://any@shop"}}})
	}
	e := &Carrier{log: slog.New(slog.DiscardHandler)}
	e.source.open = func() (opened, error) { return opened{Backend: server}, nil }
	e.recover(ownerPrefix + "now")
	for pid, want := range states {
		if task := do(protocol.TaskGet{ID: pid}).Task; task.State != want {
			t.Errorf("the task of %q is %s, want %s", pid, task.State, want)
		}
	}
}

// TestMemoryAfterACrash lets the time pass after a crash. The store changes for the next topology
// only.
func TestMemoryAfterACrash(t *testing.T) {
	m := NewMemory()
	now := m.time()
	m.attach(func() time.Time { return now })
	create := protocol.PromiseCreate{ID: "p", TimeoutAt: now.Add(time.Hour).UnixMilli(), Tags: map[string]string{protocol.TagTimer: "true"}}
	if _, err := m.Do(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	m.CrashAfter(0)
	if _, err := m.Do(t.Context(), protocol.PromiseGet{ID: "p"}); err != ErrCrashed || !m.Crashed() || m.hasTimer() {
		t.Errorf("the crash: %v", err)
	}
	now = now.Add(2 * time.Hour)
	if _, ok := m.next(); ok || m.step() {
		t.Error("a timer is processed after the crash")
	}
	m.attach(func() time.Time { return now })
	if at, ok := m.next(); !ok || at.After(now) || !m.step() || m.step() {
		t.Errorf("the next topology has nothing to do, or something at %v", at)
	}
}
