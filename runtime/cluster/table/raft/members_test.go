package raft_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/cluster/table/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// founded is the plan of the cluster.
var founded = table.NewPlan("plan-1", []string{"processor counter = number 0, 12 instances"})

var placements = []table.Placement{{Processor: table.Processor{Name: "counter", Instances: 12}}}

// started opens the first nodes and bootstraps the table.
func (c *cluster) started(t *testing.T) (context.Context, map[string]*node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	nodes := map[string]*node{}
	var list []table.Node
	for name, address := range first {
		nodes[name] = c.open(t, c.config(name))
		list = append(list, table.Node{Name: name, Address: address})
	}
	if err := table.Bootstrap(ctx, nodes["n1"], founded, placements, list); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, n := range nodes {
			_ = n.Close() // some of them were closed in the test
		}
	})
	return ctx, nodes
}

// waitFor waits until a condition holds that depends on other nodes.
func waitFor(ctx context.Context, t *testing.T, what string, ready func() bool) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !ready() {
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, ctx.Err())
		}
	}
}

// voters returns the names of the voters, as a node knows them. While a change is being
// made, the previous voters still count, and a name with an exclamation mark is a voter
// that leaves.
func voters(n *node) string {
	var names []string
	for _, m := range n.Status().Members {
		switch {
		case m.Leaving:
			names = append(names, m.Name+"!")
		case !m.Learner:
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestGoneVoterIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var gone atomic.Bool
		c.change = func(config *raft.Config) {
			config.Gone = func(name string) bool { return name == "n2" && gone.Load() }
			config.ReplaceAfter = 300 * time.Millisecond
		}
		ctx, nodes := c.started(t)
		n4 := c.open(t, c.config("n4"))
		nodes["n4"] = n4
		if err := table.Enter(ctx, n4, table.Node{Name: "n4", Address: "n4:7400", Boot: table.NewBoot(), Plan: "plan-1"}); err != nil {
			t.Fatal(err)
		}
		if got := voters(n4); got != "n1 n2 n3" {
			t.Fatalf("the voters are %s before a node is gone", got)
		}
		if err := nodes["n2"].Close(); err != nil {
			t.Fatal(err)
		}
		gone.Store(true)
		waitFor(ctx, t, "n4 has no vote", func() bool {
			return voters(nodes["n1"]) == "n1 n3 n4" && voters(nodes["n3"]) == "n1 n3 n4" && voters(n4) == "n1 n3 n4"
		})
		// The new voter counts: with n3 down as well, n1 and n4 are a majority.
		if err := nodes["n3"].Close(); err != nil {
			t.Fatal(err)
		}
		for {
			_, err := n4.Txn(ctx, nil, []table.Change{table.Assign{Processor: "counter", First: 0, Count: 1, Node: "n4"}})
			if err == nil {
				break
			}
			if !errors.Is(err, table.ErrUnknown) || ctx.Err() != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestAdviceForADamagedDisk follows the advice of the error.
func TestAdviceForADamagedDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ctx, nodes := c.started(t)
		if err := nodes["n2"].Close(); err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(c.dir, "addresses", "n2")
		if err := os.Remove(filepath.Join(folder, "member")); err != nil {
			t.Fatal(err)
		}
		config := c.config("n2")
		config.Transport = nodes["n1"].link // Open fails before it uses the transport
		_, err := raft.Open(config)
		if err == nil || !strings.HasSuffix(err.Error(), "remove "+folder+", and start the node while most other first members run") {
			t.Fatalf("got the error %v", err)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		nodes["n2"] = c.open(t, c.config("n2"))
		if err := nodes["n2"].Sync(ctx); err != nil {
			t.Errorf("the node did not join again: %v", err)
		}
		inUse := c.config("n1")
		inUse.Transport = nodes["n1"].link
		if _, err := raft.Open(inUse); !errors.Is(err, wal.ErrInUse) || strings.Contains(err.Error(), "remove") {
			t.Errorf("got the error %v for a folder that is in use", err)
		}
	})
}

func TestEmptyDiskUnderOldName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ctx, nodes := c.started(t)
		before := nodes["n2"].Status().ID
		if err := nodes["n2"].Close(); err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(c.dir, "addresses", "n2")
		if err := os.Rename(folder, folder+"-old"); err != nil {
			t.Fatal(err)
		}
		n2 := c.open(t, c.config("n2"))
		nodes["n2"] = n2
		if err := n2.Sync(ctx); err != nil {
			t.Fatalf("the node with an empty disk did not join: %v", err)
		}
		if i, _, ok := n2.Replica().Processor("counter"); !ok {
			t.Error("the node with an empty disk has no table")
		} else if place, epoch := n2.Replica().Lookup(i, 11); place == nil || epoch == 0 {
			t.Errorf("the node with an empty disk finds counter/11 on %v with epoch %d", place, epoch)
		}
		if id := n2.Status().ID; id == before {
			t.Errorf("the node with an empty disk has the id %x of the previous disk", id)
		}
		waitFor(ctx, t, "n2 has no vote", func() bool { return voters(nodes["n1"]) == "n1 n2 n3" })
		for _, m := range nodes["n1"].Status().Members {
			if m.ID == before {
				t.Errorf("the id of the previous disk is still a member: %+v", m)
			}
		}
		// The previous disk must not be used again.
		if err := n2.Close(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Rename(folder, folder+"-new"), os.Rename(folder+"-old", folder)); err != nil {
			t.Fatal(err)
		}
		old := c.open(t, c.config("n2"))
		nodes["n2"] = old
		select {
		case <-old.Done():
		case <-ctx.Done():
			t.Fatal("a node with a removed disk still runs")
		}
		if err := old.Err(); !errors.Is(err, table.ErrSuperseded) {
			t.Errorf("the node with the removed disk ended with %v, want ErrSuperseded", err)
		}
	})
}

func TestOtherPlanIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ctx, nodes := c.started(t)
		config := c.config("n4")
		config.Plan = "plan-2"
		n4 := c.open(t, config)
		refused := new(table.PlanError)
		if err := n4.Sync(ctx); !errors.As(err, &refused) || refused.Cluster != founded || refused.Node.Hash != "plan-2" {
			t.Errorf("a node with another plan got %v, want a PlanError with the plan of the cluster", err)
		}
		if err := n4.Close(); !errors.Is(err, table.ErrPlan) {
			t.Errorf("Close of the refused node returned %v", err)
		}
		for _, m := range nodes["n1"].Status().Members {
			if m.Name == "n4" {
				t.Error("the refused node is a member")
			}
		}
	})
}

// TestForgottenNodesLeaveTheGroup lets nodes join, be forgotten and join again.
func TestForgottenNodesLeaveTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.change = func(config *raft.Config) { config.ReplaceAfter = time.Millisecond }
		ctx, nodes := c.started(t)
		ids := map[uint64]bool{}
		for range 3 {
			n4 := c.open(t, c.config("n4"))
			boot := table.NewBoot()
			if err := table.Enter(ctx, n4, table.Node{Name: "n4", Address: "n4:7400", Boot: boot, Plan: "plan-1"}); err != nil {
				t.Fatal(err)
			}
			if id := n4.Status().ID; ids[id] {
				t.Errorf("the id %x was used before", id)
			} else {
				ids[id] = true
			}
			if _, err := n4.Txn(ctx, nil, []table.Change{table.SetState{Name: "n4", Boot: boot, State: table.Leaving}, table.SetState{Name: "n4", Boot: boot, State: table.Left}, table.Forget{Name: "n4"}}); err != nil {
				t.Fatal(err)
			}
			if err := n4.Close(); err != nil {
				t.Fatal(err)
			}
			waitFor(ctx, t, "n4 is still a member", func() bool {
				for _, n := range nodes {
					if s := n.Status(); s.Role == "leader" && len(s.Members) == 3 {
						return true
					}
				}
				return false
			})
			if err := os.RemoveAll(filepath.Join(c.dir, "addresses", "n4")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestFlippedLog flips one bit in the log of a node.
func TestFlippedLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ctx, nodes := c.started(t)
		for i := range 200 { // at n3, whose log has each of them when it is answered
			if _, err := nodes["n3"].Txn(ctx, nil, []table.Change{table.Assign{Processor: "counter", First: i % 12, Count: 1, Node: "n3"}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := nodes["n3"].Close(); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(c.dir, "addresses", "n3", "wal", "*.wal"))
		if err != nil || len(files) != 1 {
			t.Fatalf("the log has the files %v: %v", files, err)
		}
		b, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(b[2000:], []byte("counter"))
		if at < 0 {
			t.Fatal("the log has no change of the table")
		}
		b[2000+at] ^= 0x40 // in the middle of synced entries, and not in the padding of a frame
		if err := os.WriteFile(files[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		link, err := c.network.Join("n3")
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close()
		config := c.config("n3")
		config.Transport = link
		if o, err := raft.Open(config); !errors.Is(err, wal.ErrDamaged) {
			t.Errorf("a damaged log was opened: %v, %v", o, err)
		}
	})
}
