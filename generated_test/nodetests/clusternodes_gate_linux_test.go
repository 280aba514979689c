package nodetests_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/clusternodes"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper/border"
)

// onlyNode is the only node of a cluster. The test uses its gate as the fence of a node does.
type onlyNode struct {
	*border.Border
	begun chan struct{}
}

func (n *onlyNode) Begin(_ context.Context, b *border.Border) error {
	n.Border = b
	close(n.begun)
	return b.Place(func(int, int) bool { return true })
}

func (n *onlyNode) Quiet(group int) {
	go func() { // the caller holds a lock
		if s := n.Group(group); s.Quiet {
			n.Agree(group, s.Phase)
		}
	}()
}

func (n *onlyNode) Forward(o *border.Outlet, c border.Chunk) {
	o.Reaches(c.Messages, 0)
	o.Settle(c.Messages, nil)
}

func (n *onlyNode) Find(name string) (here, known bool)                { return name == "n1", name == "n1" }
func (n *onlyNode) Others() int                                        { return 0 }
func (n *onlyNode) FencingToken(int, int) uint64                       { return 1 }
func (n *onlyNode) Stopping()                                          {}
func (n *onlyNode) End(error)                                          {}
func (n *onlyNode) Handled(*border.Arrivals, uint64)                   {}
func (n *onlyNode) Reply(*border.Arrivals, border.Call, []byte, error) {}

// TestClusterNodesGate closes the gate of a node while calls run in processes of their own. A process completes its call,
// and makes no other call before the gate opens. When the fence ends the node, a process whose call runs is killed.
func TestClusterNodesGate(t *testing.T) {
	speed.Landing(t) // TestTheGateClosesWithinATurn of runtime/piper needs no processes
	dir := t.TempDir()
	t.Setenv(clusternodes.VariableHold, dir)
	n := &onlyNode{begun: make(chan struct{})}
	top, err := clusternodes.New(namedProcessors("n1"), border.UseNodes(n))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- top.Run(t.Context()) }()
	<-n.begun
	release := filepath.Join(dir, "release")
	calls := func() (all int, running []string) { // of all processes, and the processes whose call runs
		text, _ := os.ReadFile(filepath.Join(dir, "calls"))
		lines := map[string]int{}
		for pid := range strings.FieldsSeq(string(text)) {
			lines[pid]++
			all++
		}
		for pid, n := range lines {
			if n%2 == 1 {
				running = append(running, pid)
			}
		}
		return all, running
	}
	awaitCalls := func(what string, holds func(all int, running []string) bool) {
		t.Helper()
		for end := time.Now().Add(awaitMax); !holds(calls()); <-time.After(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("timeout while waiting for %s", what)
			}
		}
	}
	isRunning := func(_ int, running []string) bool { return len(running) > 0 }
	awaitCalls("a call", isRunning)
	awaitCalls("all parcels", func(int, []string) bool {
		return top.Snapshot().Edges[clusternodes.EdgeProbeBoxParcel].Sent == 2*clusternodes.Questions
	})
	n.CloseGate()
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	awaitCalls("the end of the calls", func(_ int, running []string) bool { return len(running) == 0 })
	<-time.After(100 * time.Millisecond) // a call takes less than a millisecond
	const linesMax = 2 * 2               // of one call in each of two processes
	if all, running := calls(); all > linesMax || len(running) > 0 {
		t.Fatalf("calls have begun behind the gate: %d lines, and calls run in %v", all, running)
	}
	if err := os.Remove(release); err != nil {
		t.Fatal(err)
	}
	n.OpenGate(time.Time{})
	awaitCalls("a call after the gate has opened", isRunning)
	_, running := calls()
	n.CloseGate()
	failed := errors.New("the node is fenced")
	n.Fail(failed)
	if err := <-ended; !errors.Is(err, failed) {
		t.Errorf("the node has ended with %v", err)
	}
	for _, pid := range running {
		for end := time.Now().Add(awaitMax); ; <-time.After(time.Millisecond) {
			if _, err := os.Stat(filepath.Join("/proc", pid)); err != nil {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the process %s is still there", pid)
			}
		}
	}
}
