package raft_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/cluster/table/raft"
)

// enter enters a process of a node in the table.
func enter(ctx context.Context, t *testing.T, n *node, name, address string) table.Boot {
	t.Helper()
	boot := table.NewBoot()
	if err := table.Enter(ctx, n, table.Node{Name: name, Address: address, Boot: boot, Plan: "plan-1"}); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return boot
}

// leave says that a node has left, and ends its table.
func leave(ctx context.Context, t *testing.T, n *node, name string, boot table.Boot) {
	t.Helper()
	if err := errors.Join(table.Leave(ctx, n, name, boot), n.Close()); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestNodesLeaveTheGroup lets more nodes with names of their own join and leave than the group
// may have members. In the end it has its first members.
func TestNodesLeaveTheGroup(t *testing.T) {
	for range speed.Pick(t, 1, 1, 10) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			ctx, nodes := c.started(t)
			for i := range 70 {
				name := fmt.Sprintf("g%d", i)
				n := c.open(t, c.config(name))
				leave(ctx, t, n, name, enter(ctx, t, n, name, name+":7400"))
			}
			waitFor(ctx, t, "nodes that have left are still members", func() bool { return len(nodes["n1"].Status().Members) == len(first) })
			if _, err := os.Stat(filepath.Join(c.dir, "addresses", "g0")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a node that has left keeps its log: %v", err)
			}
		})
	}
}

// TestLeftNodeReturns starts a node that has left again, with its folder: after an orderly end,
// and after one in which it was killed just before it had removed its log. It joins as a new node.
func TestLeftNodeReturns(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint("killed ", killed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				ctx, nodes := c.started(t)
				n4 := c.open(t, c.config("n4"))
				before := n4.Status().ID
				boot := enter(ctx, t, n4, "n4", "n4:7400")
				if err := table.Leave(ctx, n4, "n4", boot); err != nil {
					t.Fatal(err)
				}
				folder := filepath.Join(c.dir, "addresses", "n4")
				copied := t.TempDir()
				if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
					t.Fatal(err)
				}
				if err := n4.Close(); err != nil {
					t.Fatal(err)
				}
				waitFor(ctx, t, "n4 is still a member", func() bool { return len(nodes["n1"].Status().Members) == len(first) })
				if killed {
					if err := os.CopyFS(folder, os.DirFS(copied)); err != nil {
						t.Fatal(err)
					}
				}
				n4 = c.open(t, c.config("n4"))
				nodes["n4"] = n4
				enter(ctx, t, n4, "n4", "n4:7400")
				if id := n4.Status().ID; id == before {
					t.Errorf("the node has the id %x again, which was removed", id)
				}
				if got := n4.Replica().Node("n4"); got == nil || got.State != table.Member {
					t.Errorf("the table has %+v", got)
				}
			})
		})
	}
}

// lines is a logger that keeps its lines.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// TestNewNameAtAnOldAddress starts a node with the address of another one. If that one has left,
// the node joins. If it is a member, the node is told so, and the leader logs little.
func TestNewNameAtAnOldAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var logged lines
		c.change = func(config *raft.Config) { config.Logger = slog.New(slog.NewTextHandler(&logged, nil)) }
		ctx, nodes := c.started(t)
		const address = "host:7400"
		open := func(name string) *node {
			config := c.config(name)
			config.Address = address
			return c.open(t, config)
		}
		n4 := open("n4")
		leave(ctx, t, n4, "n4", enter(ctx, t, n4, "n4", address))
		n5 := open("n5")
		nodes["n5"] = n5
		enter(ctx, t, n5, "n5", address)
		if err := n5.Close(); err != nil { // it crashes
			t.Fatal(err)
		}
		n6 := open("n6")
		defer func() { _ = n6.Close() }() // it returns the error below again
		err := table.Enter(ctx, n6, table.Node{Name: "n6", Address: address, Boot: table.NewBoot(), Plan: "plan-1"})
		if !errors.Is(err, table.ErrRefused) || !strings.Contains(err.Error(), "node n5 has the address "+address) {
			t.Errorf("the node got %v", err)
		}
		if n := logged.count("could not be changed"); n > len(first) {
			t.Errorf("%d lines were logged, because the members could not be changed", n)
		}
	})
}
