package edges

import (
	"fmt"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/piper"
)

// TestFiguresOfOtherProcesses ends executions in ways that this process does not see. They are
// counted with the next check, and forgotten.
func TestFiguresOfOtherProcesses(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := newFigures([]Edge{{Index: 3}})
	f.now = func() time.Time { return now }
	states := map[string]protocol.PromiseState{"a": protocol.Resolved, "b": protocol.Rejected, "c": protocol.RejectedCancel, "d": protocol.RejectedTimeout}
	asked := 0
	stateOf := func(id string) (protocol.PromiseState, bool) {
		asked++
		if s := states[id]; s != "" {
			return s, true
		}
		return protocol.Pending, true
	}
	want := func(what string, figures piper.DurableFigures, known int) {
		t.Helper()
		if got := f.read(3); got != figures || len(f.known) != known {
			t.Errorf("%s: %+v, %d known, want %+v, %d known", what, got, len(f.known), figures, known)
		}
	}
	for _, id := range []string{"a", "b", "c", "d", "sleeping", "here"} {
		if !f.add(3, id) || f.add(3, id) {
			t.Errorf("%s is not counted once", id)
		}
	}
	f.outcome("here", durable.Outcome{State: durable.Completed})
	f.end("here", true)
	if f.add(3, "here") {
		t.Error("an execution is counted again after its end")
	}
	f.check(stateOf)
	want("before the check", piper.DurableFigures{Sent: 6, Received: 1, Len: 5}, 6)
	now = now.Add(firstCheck)
	f.check(func(string) (protocol.PromiseState, bool) { asked++; return "", false }) // of a
	f.check(stateOf)
	want("after the check", piper.DurableFigures{Sent: 6, Received: 2, Dropped: 2, Len: 2}, 5)
	if asked != 5 {
		t.Errorf("the store was asked %d times about 5 executions", asked)
	}
	now = now.Add(2 * firstCheck)
	f.check(stateOf)
	want("after the second check", piper.DurableFigures{Sent: 6, Received: 3, Dropped: 2, Len: 1}, 2)
	now = now.Add(4 * firstCheck)
	f.check(stateOf)
	want("after the third check", piper.DurableFigures{Sent: 6, Received: 3, Dropped: 2, Len: 1}, 1)
	asked = 0
	for end := now.Add(10 * 24 * time.Hour); now.Before(end); now = now.Add(time.Second) {
		f.check(stateOf)
	}
	if asked < 150 || asked > 180 {
		t.Errorf("the store was asked %d times about an execution that sleeps for 10 days", asked)
	}
	states["sleeping"] = protocol.Resolved
	now = now.Add(2 * firstCheck << checkTimes)
	f.check(stateOf)
	now = now.Add(2 * firstCheck << checkTimes)
	f.check(stateOf)
	want("at the end", piper.DurableFigures{Sent: 6, Received: 4, Dropped: 2}, 0)
}

// TestFiguresAreBounded counts no more executions than there is memory for.
func TestFiguresAreBounded(t *testing.T) {
	const knownMax = 100
	f := newFigures([]Edge{{Index: 0}})
	f.knownMax = knownMax
	for i := range knownMax + 10 {
		f.add(0, fmt.Sprint(i))
	}
	if got := f.read(0); got.Sent != knownMax || len(f.known) != knownMax {
		t.Errorf("%+v, %d known", got, len(f.known))
	}
}
