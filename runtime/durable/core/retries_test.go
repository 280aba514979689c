package core_test

import (
	"testing"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestRetriesLeftOut: a Tick leaves out the retries that its driver cannot send, writes
// nothing for them, and continues behind them. The end of a lease is never left out.
func TestRetriesLeftOut(t *testing.T) {
	w := defaults(t).at(1000)
	for _, id := range []string{"a", "b", "c"} {
		w.quick(protocol.PromiseCreate{ID: id, TimeoutAt: 900_000, Tags: targeted()})
	}
	w.quick(protocol.TaskCreate{PID: "w", TTL: 30_000, Action: protocol.PromiseCreate{ID: "leased", TimeoutAt: 900_000, Tags: targeted()}})
	w.at(31_000)
	none := func(string, protocol.TaskRef) bool { return false }
	r := &core.Retries{Wanted: none}
	if result, sent := w.must(core.Tick{Limit: 2, Retries: r}); sent != "" || !result.More || r.Left != 2 || r.Passed != 2 {
		t.Errorf("sent %q, %+v", sent, r)
	}
	if result, sent := w.must(core.Tick{Retries: r}); sent != "execute leased v1" || result.More || r.Left != 3 || r.Passed != 4 {
		t.Errorf("sent %q, %+v", sent, r)
	}
	if wait, ok := core.NextFrom(w.kv, w.now, r.From); !ok || wait != core.RetryTimeoutDefault {
		t.Errorf("the next timeout is in %d ms, %v", wait, ok)
	}
	if wait, ok := core.Next(w.kv, w.now); !ok || wait != 0 {
		t.Errorf("with the retries that were left out, the next timeout is in %d ms, %v", wait, ok)
	}
	only := func(_ string, task protocol.TaskRef) bool { return task.ID == "b" }
	r = &core.Retries{Wanted: only}
	if _, sent := w.must(core.Tick{Retries: r}); sent != "execute b v0" || r.Left != 2 {
		t.Errorf("sent %q, %+v", sent, r)
	}
}
