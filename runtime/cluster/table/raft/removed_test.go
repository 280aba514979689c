package raft_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	tableraft "github.com/topogen/topogen/runtime/cluster/table/raft"
	"github.com/topogen/topogen/runtime/raft"
)

// TestRemovedNodeReturns removes a node that has crashed, and starts its next process with the
// folder of the old one: soon, when the group still has its id, and later, when it has not.
// The first one joins. The second one ends, and its error says what to do.
func TestRemovedNodeReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.change = func(config *tableraft.Config) { config.ReplaceAfter = time.Hour }
		ctx, nodes := c.started(t)
		enter := func() table.Boot {
			t.Helper()
			n4 := c.open(t, c.config("n4"))
			nodes["n4"] = n4
			boot := table.NewBoot()
			if err := table.Enter(ctx, n4, table.Node{Name: "n4", Address: "n4:7400", Boot: boot, Plan: "plan-1"}); err != nil {
				t.Fatal(err)
			}
			return boot
		}
		crash := func(boot table.Boot) {
			t.Helper()
			if err := nodes["n4"].Close(); err != nil {
				t.Fatal(err)
			}
			if err := nodes["n1"].Sync(ctx); err != nil {
				t.Fatal(err)
			}
			if err := table.Remove(ctx, nodes["n1"], "n4", boot); err != nil {
				t.Fatal(err)
			}
		}
		crash(enter())
		crash(enter())

		// Nodes with a shorter ReplaceAfter lead the group now. They remove the id of n4.
		c.change = func(config *tableraft.Config) { config.ReplaceAfter = 100 * time.Millisecond }
		for _, name := range []string{"n1", "n2", "n3"} {
			if err := nodes[name].Close(); err != nil {
				t.Fatal(err)
			}
			nodes[name] = c.open(t, c.config(name))
		}
		waitFor(ctx, t, "n4 is still in the group", func() bool {
			return len(nodes["n1"].Status().Members) == 3 && !slices.ContainsFunc(nodes["n1"].Status().Members, func(m raft.MemberStatus) bool { return m.Name == "n4" })
		})
		n4 := c.open(t, c.config("n4"))
		defer func() { _ = n4.Close() }() // it returns the error below again
		err := table.Enter(ctx, n4, table.Node{Name: "n4", Address: "n4:7400", Boot: table.NewBoot(), Plan: "plan-1"})
		if want := "empty the folder " + filepath.Join(c.dir, "addresses", "n4"); !errors.Is(err, table.ErrSuperseded) || !strings.Contains(err.Error(), want) {
			t.Errorf("the process with the old folder got %v, want %s", err, want)
		}
	})
}
