package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	tableraft "github.com/topogen/topogen/runtime/cluster/table/raft"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
)

// memoryNodes makes the topologies of nodes that share a network and an address table in
// memory. The first two are first members, and the others join.
func memoryNodes(t *testing.T, p *program, tables table.Opener, nodes int) (tops []*top) {
	t.Helper()
	network, dir := transport.NewMemory(transport.MemoryOptions{}), t.TempDir()
	for i := range nodes {
		name := fmt.Sprintf("n%d", i+1)
		wire := join(t, network, name)
		top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
			s.Transport = wire
			c := p.config(2, dir, nil)
			c.Table = tables
			return Open(c, s)
		}, piper.Node(name), piper.NodeAddress(name+":1"), piper.DrainTimeout(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		tops = append(tops, top)
	}
	return tops
}

// runEach runs topologies until their contexts end. wait waits for one of them.
func runEach(t *testing.T, tops []*top) (stop []context.CancelFunc, wait func(i int)) {
	t.Helper()
	var done []chan error
	for _, top := range tops {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		stop, done = append(stop, cancel), append(done, ended)
		go func() { ended <- top.pool.Run(ctx) }()
	}
	return stop, func(i int) {
		t.Helper()
		select {
		case err := <-done[i]:
			if err != nil {
				t.Errorf("node %d: %v", i+1, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("node %d still runs", i+1)
		}
	}
}

// TestStopWhileStarting stops a node that waits for another first member.
func TestStopWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, dir := endless(), t.TempDir()
		wire := join(t, transport.NewMemory(transport.MemoryOptions{}), "n1")
		top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
			s.Transport = wire
			c := p.config(2, dir, nil)
			c.Table = tableraft.Opener()
			return Open(c, s)
		}, piper.Node("n1"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- top.pool.Run(ctx) }()
		awaitNode(t, top.node, "failure detection", func(v *View) bool { return len(v.Nodes) == 2 })
		cancel()
		err = <-done
		want := "cluster: node n1: stopped before it had joined the cluster, while it waited for n2: context canceled"
		if !errors.Is(err, context.Canceled) || err.Error() != want {
			t.Errorf("got the error %v, want %s", err, want)
		}
	})
}

// awaitNode waits until a condition on a node holds.
func awaitNode(t *testing.T, n *Node, what string, condition func(v *View) bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !condition(n.View()); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timeout while waiting for %s", what)
		}
	}
}

// stateOf returns the state of a node in the address table, as another node knows it.
func stateOf(v *View, name string) string {
	for _, n := range v.Nodes {
		if n.Name == name {
			return n.State
		}
	}
	return ""
}

// TestJoinedNodeLeaves stops a node that has joined, and then all others. They end
// together, and do not wait for the node that has left.
func TestJoinedNodeLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := endless()
		tables := table.NewMemory()
		tops := memoryNodes(t, p, func(table.Setup) (table.Table, error) { return tables.Open(), nil }, 3)
		asNode(tops[2].node.core).leaveAfter = time.Millisecond
		stop, wait := runEach(t, tops)
		first, joined := tops[0].node, tops[2].node
		awaitNode(t, joined, "the node to join", func(v *View) bool { return v.State == stateRunning })
		awaitNode(t, first, "the joined node", func(v *View) bool { return stateOf(v, "n3") == table.Member.String() })
		stop[2]()
		wait(2)
		if got := stateOf(first.View(), "n3"); got != table.Left.String() {
			t.Errorf("the node that has left is in the state %q", got)
		}
		stop[0]()
		stop[1]()
		wait(0)
		wait(1)
		for i, top := range tops {
			if top.node.core.left != (i == 2) {
				t.Errorf("node %d has left alone: %v", i+1, top.node.core.left)
			}
		}
	})
}

// TestJoinedNodeLeavesWithAllOthers stops all nodes at the same time. The first members,
// which replicate the address table, wait until the other node has left it.
func TestJoinedNodeLeavesWithAllOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tops := memoryNodes(t, endless(), tableraft.Opener(), 3)
		stop, wait := runEach(t, tops)
		awaitNode(t, tops[2].node, "the node to join", func(v *View) bool { return v.State == stateRunning })
		for _, n := range tops[:2] {
			awaitNode(t, n.node, "the joined node", func(v *View) bool { return stateOf(v, "n3") == table.Member.String() })
		}
		for i := range stop {
			stop[i]()
		}
		for i := range tops {
			wait(i)
		}
		if got := stateOf(tops[2].node.View(), "n3"); got != table.Left.String() {
			t.Errorf("the node that is not a first member is in the state %q", got)
		}
	})
}

// TestFinishAfterANodeHasLeft lets the topology wait for a node that has joined and is
// silent, and then says that it has left: the topology finishes.
func TestFinishAfterANodeHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := endless()
		p.messages = 100
		tables := table.NewMemory()
		tops := memoryNodes(t, p, func(table.Setup) (table.Table, error) { return tables.Open(), nil }, 2)
		_, wait := runEach(t, tops)
		outside := tables.Open()
		defer func() { _ = outside.Close() }()
		silent := table.Node{Name: "n3", Address: "n3:1", Boot: table.NewBoot(), Plan: "plan"}
		if err := table.Enter(t.Context(), outside, silent); err != nil {
			t.Fatal(err)
		}
		first := tops[0].node
		quiet := func() (n int) {
			first.running.Lock()
			defer first.running.Unlock()
			if !first.started {
				return 0
			}
			return len(asNode(first.core).groups.groups[0].status)
		}
		awaitNode(t, first, "both nodes to be quiet", func(*View) bool { return quiet() == 2 })
		left := table.SetState{Name: silent.Name, Boot: silent.Boot, State: table.Left}
		if _, err := outside.Txn(t.Context(), nil, []table.Change{left}); err != nil {
			t.Fatal(err)
		}
		wait(0)
		wait(1)
		if err := p.check(tops); err != nil {
			t.Error(err)
		}
	})
}
