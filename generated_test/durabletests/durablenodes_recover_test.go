package durabletests_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/generated_test/durablenodes"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/replicated"
	"github.com/topogen/topogen/runtime/raft"
)

// TestDurableNodesStartsAgain starts a node whose earlier process was killed while it had acquired a task.
// The task is released at once. The tasks of other nodes are not, because their processes may run,
// even if the name of another node begins with that of this node.
func TestDurableNodesStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		oneDisk := func(c *raft.Config) { c.Peers, c.Dir = nil, filepath.Join(dir, "ledger") }
		pids := map[string]string{"a": "node:alone:1", "b": "node:alone-2:1", "c": "node:alone:2:1"}
		first := newNode(t, new(world), oneDisk)
		for order := range pids {
			if err := first.Api().SendOrder(t.Context(), durablenodes.Order{ID: order, Steps: 3}); err != nil {
				t.Fatal(err)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := first.Run(ended); err != nil {
			t.Fatal(err)
		}
		id := func(order string) string { return "durablenodes:api.orders.Order:" + order }
		nodesWithStore(t, oneDisk, func(do func(protocol.Operation) protocol.Result) {
			for order, pid := range pids {
				task := do(protocol.TaskGet{ID: id(order)}).Task
				do(protocol.TaskAcquire{ID: task.ID, Version: task.Version, PID: pid, TTL: time.Hour.Milliseconds()})
			}
		})

		w := new(world)
		second := newNode(t, w, oneDisk)
		ctx, stop := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- second.Run(ctx) }()
		began := time.Now()
		if r, err := second.Api().AskOrder(t.Context(), durablenodes.Order{ID: "a", Steps: 3}); err != nil || r.Sum != 6 {
			t.Errorf("%+v, %v", r, err)
		}
		if took := time.Since(began); took > releasedWithin {
			t.Errorf("the order waited for %v", took)
		}
		stop()
		if err := <-result; err != nil {
			t.Error(err)
		}
		nodesWithStore(t, oneDisk, func(do func(protocol.Operation) protocol.Result) {
			for _, order := range []string{"b", "c"} {
				if task := do(protocol.TaskGet{ID: id(order)}).Task; task.State != protocol.TaskAcquired || *task.PID != pids[order] {
					t.Errorf("the task of another node is %+v", task)
				}
			}
		})
	})
}

// nodesWithStore uses the store that no topology uses.
func nodesWithStore(t *testing.T, nodes func(*raft.Config), use func(do func(protocol.Operation) protocol.Result)) {
	t.Helper()
	ledger, err := durablenodes.NewLedger(nodes)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ledger.Neighbor("promises")
	if err != nil {
		t.Fatal(err)
	}
	n, err := replicated.Open(replicated.Config{Raft: c, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	use(func(op protocol.Operation) protocol.Result {
		r, err := n.Do(t.Context(), op)
		if err != nil || r.Status != protocol.OK {
			t.Fatalf("%s: %+v, %v", op.Kind(), r, err)
		}
		return r
	})
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
