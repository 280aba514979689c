package raft_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// observedGroup is three nodes in virtual time. It collects the messages that each sends.
type observedGroup struct {
	*testing.T
	links map[string]transport.Transport
	disks map[string]*memoryDisk
	nodes map[string]*observedNode
}

// observedNode is a state machine and its host. turns runs the turns that the state machine
// has asked for.
type observedNode struct {
	*machine
	mu      sync.Mutex
	wakes   int
	updates []fsm.AppliedUpdate[appendTo, struct{}]
	leaders []fsm.Leadership
}

func (n *observedNode) BeginReply()   {}
func (n *observedNode) EndReply()     {}
func (n *observedNode) Stepped() bool { return false }
func (n *observedNode) Wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wakes++
}

func (n *observedNode) Outcome(fsm.Outcome[appendTo, struct{}]) {}
func (n *observedNode) Upcoming(fsm.Upcoming[appendTo])         {}

// turns runs turns until the state machine asks for no more.
func (n *observedNode) turns() (err error) {
	for {
		n.mu.Lock()
		wakes := n.wakes
		n.wakes = 0
		n.mu.Unlock()
		if wakes == 0 || err != nil {
			return err
		}
		err = n.Answer(n)
	}
}

func startObserved(t *testing.T) *observedGroup {
	g := &observedGroup{T: t, links: map[string]transport.Transport{}, disks: map[string]*memoryDisk{}, nodes: map[string]*observedNode{}}
	network := transport.NewMemory(transport.MemoryOptions{})
	for _, name := range slices.Sorted(maps.Keys(instancePeers)) {
		link, err := network.Join(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = link.Close() })
		g.links[name], g.disks[name] = link, newMemoryDisk(uint64(len(g.disks)))
		g.start(name)
	}
	return g
}

func (g *observedGroup) start(node string) {
	c := raft.Config{
		Topology: "test", Group: "lists", Node: node, Peers: instancePeers, SnapshotEvery: 10,
		Transport: g.links[node], Forward: true, Disk: g.disks[node], Logger: slog.New(slog.DiscardHandler),
	}
	var err error
	n := new(observedNode)
	if n.machine, err = raft.New(c, listsDefinition); err != nil {
		g.Fatal(err)
	}
	n.OnApplied(2, func(m fsm.AppliedUpdate[appendTo, struct{}]) error { n.updates = append(n.updates, m); return nil })
	n.OnLeadership(2, func(l fsm.Leadership) { n.leaders = append(n.leaders, l) })
	if err := n.Start(g.Context(), n); err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = n.Close() })
	g.nodes[node] = n
}

// settle waits for a number of election timeouts, and then runs all turns.
func (g *observedGroup) settle(timeouts int) {
	time.Sleep(time.Duration(timeouts) * time.Second) // of the default configuration
	synctest.Wait()
	for name, n := range g.nodes {
		if err := n.turns(); err != nil {
			g.Errorf("%s: %v", name, err)
		}
	}
}

// leader returns the leader. All nodes must have sent the same one.
func (g *observedGroup) leader() (l fsm.Leadership) {
	g.Helper()
	for name, n := range g.nodes {
		if len(n.leaders) == 0 {
			g.Fatalf("%s must send a leadership", name)
		}
		last := n.leaders[len(n.leaders)-1]
		if s := n.Status(); last.Here != (last.Leader == name) || last.Instance != 2 || last.Term != s.Term || last.Leader != s.Leader {
			g.Errorf("the leadership of %s must match its status %+v, got %+v", name, s, last)
		}
		if last.Here = false; l.Term > 0 && l != last {
			g.Errorf("all nodes must send the same leadership; %s sent %+v, another node %+v", name, last, l)
		}
		l = last
	}
	return l
}

// propose proposes to append numbers, at any node.
func (g *observedGroup) propose(from, to int) {
	g.Helper()
	for i := from; i < to; i++ {
		for _, n := range g.nodes {
			if _, err := n.Propose(g.Context(), appendTo{0, uint64(13*17*i + 1), -1}); err != nil {
				g.Fatal(err)
			}
			break // any node: the order of a map is random
		}
	}
}

// TestNodesTell: all nodes send the same leaders and the same applied updates, each update once.
// If a node gets a snapshot in place of updates, the next update says which ones are missing.
func TestNodesTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := startObserved(t)
		g.settle(5)
		first := g.leader()
		g.propose(0, 25)
		g.settle(1)
		for name, n := range g.nodes {
			n.check(t, name, 0, 25)
		}
		if err := g.nodes[first.Leader].Close(); err != nil {
			t.Error(err)
		}
		delete(g.nodes, first.Leader)
		g.settle(10)
		second := g.leader()
		if second.Leader == first.Leader || second.Term <= first.Term || second.ID == first.ID {
			t.Errorf("after %+v a different node must lead in a later term, got %+v", first, second)
		}
		g.propose(25, 100)
		g.start(first.Leader)
		g.settle(10)
		g.propose(100, 110)
		g.settle(1)
		g.leader()
		for name, n := range g.nodes {
			if name != first.Leader {
				n.check(t, name, 0, 110)
				continue
			}
			n.checkLate(t)
		}
	})
}

// check checks that the node sent the updates with these numbers, and none is missing.
func (n *observedNode) check(t *testing.T, name string, from, to int) {
	t.Helper()
	if len(n.updates) != to-from {
		t.Errorf("%s sent %d updates, want %d", name, len(n.updates), to-from)
	}
	for i, m := range n.updates {
		if m.Update.number != uint64(13*17*(from+i)+1) || m.Since != 0 || m.Instance != 2 || i > 0 && m.Index <= n.updates[i-1].Index || m.Term == 0 || m.Time == 0 {
			t.Errorf("%s sent a wrong update %d: %+v", name, i, m)
		}
	}
}

// checkLate checks the updates of a node that was down for some time. It sends the updates after
// its own snapshot, and then those after the snapshot of the leader.
func (n *observedNode) checkLate(t *testing.T) {
	t.Helper()
	const step = 13 * 17
	gaps, at, number := 0, uint64(0), 1-step
	for _, m := range n.updates {
		missing := int(m.Update.number) - number - step
		switch gap := m.Since > 0 && m.Since >= at; {
		case m.Index <= at || m.Index <= m.Since || missing < 0:
			t.Errorf("after update %d at entry %d it must send a later one, got %+v", number, at, m)
		case gap != (missing > 0):
			t.Errorf("%d updates are missing between update %d at entry %d and %+v: Since must say so", missing/step, number, at, m)
		case gap:
			gaps++
		}
		at, number = m.Index, int(m.Update.number)
	}
	if gaps == 0 || gaps > 2 || number != 109*step+1 {
		t.Errorf("there must be 1 or 2 gaps and %d as the last update, got %d gaps and %d", 109*step+1, gaps, number)
	}
}

// TestTheRestIsTold: Finish sends all waiting updates, which are more than one turn sends.
func TestTheRestIsTold(t *testing.T) {
	n := new(observedNode)
	c := raft.Config{Topology: "test", Group: "lists", Disk: newMemoryDisk(1), Logger: slog.New(slog.DiscardHandler)}
	var err error
	if n.machine, err = raft.New(c, listsDefinition); err != nil {
		t.Fatal(err)
	}
	n.OnApplied(0, func(m fsm.AppliedUpdate[appendTo, struct{}]) error {
		n.updates = append(n.updates, m)
		if len(n.updates) == 400 {
			return fmt.Errorf("full")
		}
		return nil
	})
	if err := n.Start(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if _, err := n.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Finish(); err != nil || len(n.updates) != 1000 || len(n.leaders) != 0 {
		t.Errorf("Finish must send 1000 updates, got %d, %v", len(n.updates), err)
	}
	if full, behind := n.updates[399], n.updates[999]; behind.Since != full.Index {
		t.Errorf("the last update must name the undelivered one, %+v, got %+v", full, behind)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
