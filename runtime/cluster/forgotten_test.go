package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
)

// joined is a program on two first members and a node n3 that joins. The links of n3 can be
// cut.
type joined struct {
	t       *testing.T
	program *program
	network *transport.Memory
	tables  *table.Memory
	retry   time.Duration
	tops    []*top
	stops   []context.CancelFunc
	ends    []chan error
}

// startJoined starts the nodes, and waits until the joined one handles messages.
func startJoined(t *testing.T, p *program, retry time.Duration) *joined {
	p.gated = true
	j := &joined{t: t, program: p, network: transport.NewMemory(transport.MemoryOptions{}), tables: table.NewMemory(), retry: retry}
	for i := range 3 {
		j.start(fmt.Sprintf("n%d", i+1))
	}
	for _, top := range j.tops[:2] {
		awaitNode(t, top.node, "the joined node", func(v *View) bool {
			return stateOf(v, "n3") == "member" && detectorOf(v, "n3") == "alive"
		})
	}
	p.allowed.Store(20)
	j.awaitProbe(2)
	return j
}

// start starts a process of a node.
func (j *joined) start(name string) {
	wire := join(j.t, j.network, name)
	top, err := j.program.newTop(func(s piper.NodeSettings) (*Node, error) {
		s.Transport = wire
		c := j.program.config(2, j.t.TempDir(), j.tables)
		c.Retry.Timeout = j.retry
		for _, e := range j.program.edges {
			c.Edges = append(c.Edges, fmt.Sprint(e))
		}
		return Open(c, s)
	}, piper.Node(name), piper.NodeAddress(name+":1"), piper.DrainTimeout(30*time.Second))
	if err != nil {
		j.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(j.t.Context())
	ended := make(chan error, 1)
	j.tops, j.stops, j.ends = append(j.tops, top), append(j.stops, cancel), append(j.ends, ended)
	go func() {
		err := top.pool.Run(ctx)
		ended <- errors.Join(err, wire.Close())
	}()
}

// awaitProbe waits until a process has handled messages of the other nodes.
func (j *joined) awaitProbe(i int) {
	j.t.Helper()
	awaitNode(j.t, j.tops[i].node, "messages at the joined node", func(v *View) bool { return v.Edges[1].Arrived > 0 })
}

// cut cuts or restores the links of n3.
func (j *joined) cut(cut bool) {
	for _, name := range []string{"n1", "n2"} {
		j.network.Cut(name, "n3", cut)
		j.network.Cut("n3", name, cut)
	}
}

// end waits for the end of a process.
func (j *joined) end(i int) error {
	j.t.Helper()
	select {
	case err := <-j.ends[i]:
		return err
	case <-time.After(30 * time.Second):
		j.t.Fatalf("process %d still runs", i+1)
		return nil
	}
}

// runs reports whether a process still runs.
func (j *joined) runs(i int) bool { return len(j.ends[i]) == 0 }

// awaitDead waits until n1 and n2 believe that n3 is dead.
func (j *joined) awaitDead() {
	j.t.Helper()
	for _, top := range j.tops[:2] {
		awaitNode(j.t, top.node, "the death of n3", func(v *View) bool { return detectorOf(v, "n3") == "dead" })
	}
}

func detectorOf(v *View, name string) string {
	for i := range v.Nodes {
		if v.Nodes[i].Name == name {
			return v.Nodes[i].Detector
		}
	}
	return ""
}

func (j *joined) remove() (Removed, error) {
	return j.tops[0].node.remove(j.t.Context(), "ann", Removal{Node: "n3"})
}

// withProbe returns a program whose sources send to instances on each node, which send to sinks.
func withProbe(messages int) *program {
	return &program{
		processors: []part{{name: "source", instances: 2, source: true}, {name: "sink", instances: 3}, {name: "probe", instances: 1, everyNode: true}},
		edges:      [][2]int{{0, 1}, {0, 2}, {2, 1}},
		groups:     []int{0, 2, 1},
		capacity:   64, messages: messages, burst: 100,
		counts: map[string]int{}, runs: map[string]int{},
	}
}

// TestFinishAfterANodeWasRemoved cuts off a node that has joined, as a crash does. The
// topology waits for it, and finishes after an operator has removed it. Then all messages are
// handled, or dropped and counted. The removed process, which still runs, ends with an error.
func TestFinishAfterANodeWasRemoved(t *testing.T) {
	for _, c := range []struct {
		name  string
		retry time.Duration
	}{
		{"messages wait for the node", time.Minute},
		{"messages were dropped, and the session still has them", 200 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := withProbe(40)
				j := startJoined(t, p, c.retry)
				j.cut(true)
				p.allowed.Store(math.MaxInt32)
				j.awaitDead()
				first := j.tops[0].node
				kept := func(v *View) (kept, dropped uint64) {
					for i := range v.Nodes {
						if v.Nodes[i].Name == "n3" {
							return v.Nodes[i].Traffic.Kept, v.Nodes[i].Traffic.Dropped
						}
					}
					return 0, 0
				}
				awaitNode(t, first, "the last messages", func(v *View) bool {
					waiting, dropped := kept(v)
					return v.Edges[0].Sent > 0 && v.Edges[0].Pending == 0 && (c.retry == time.Minute && waiting > 0 || c.retry < time.Minute && waiting == 0 && dropped > 0)
				})
				if !j.runs(0) || !j.runs(1) {
					t.Fatal("the topology has finished without the node")
				}
				got, err := j.remove()
				if err != nil {
					t.Fatal(err)
				}
				if got.Node != "n3" || got.Address != "n3:1" || got.State != "member" || got.By != "n1" || got.Boot != j.tops[2].node.boot.String() {
					t.Errorf("got %+v", got)
				}
				for i := range 2 {
					if err := j.end(i); err != nil {
						t.Errorf("n%d: %v", i+1, err)
					}
					dropped := uint64(0)
					for k, e := range j.tops[i].pool.Snapshot().Edges {
						if e.Len != 0 || e.Waiting != 0 || e.Sent != e.Received+e.Dropped {
							t.Errorf("n%d, edge %v: %+v", i+1, p.edges[k], e)
						}
						dropped += e.Dropped
					}
					if dropped == 0 {
						t.Errorf("n%d has dropped no message for the removed node", i+1)
					}
					if state := stateOf(j.tops[i].node.View(), "n3"); state != "" {
						t.Errorf("n%d still has the removed node, which is %s", i+1, state)
					}
				}
				if err := j.end(2); !errors.Is(err, table.ErrSuperseded) || !strings.Contains(err.Error(), `node "n3" was removed from the address table; start it again to join`) {
					t.Errorf("the removed process has ended with %v", err)
				}
			})
		})
	}
}

// TestRemovedNodeJoinsAgain removes a node whose process still runs, and starts its next
// process. It joins as a new node, and gets no message of the former connection.
func TestRemovedNodeJoinsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := startJoined(t, withProbe(math.MaxInt32), time.Minute)
		j.cut(true)
		j.program.allowed.Store(math.MaxInt32)
		j.awaitDead()
		if _, err := j.remove(); err != nil {
			t.Fatal(err)
		}
		for i, top := range j.tops[:2] {
			awaitNode(t, top.node, "the removal", func(v *View) bool { return detectorOf(v, "n3") == "" })
			awaitNode(t, top.node, "further messages", func(v *View) bool {
				return v.Edges[1].Dropped > 0 && len(v.Nodes) == 2
			})
			t.Logf("n%d: %+v", i+1, top.node.View().Edges[1])
		}
		j.cut(false)
		if err := j.end(2); !errors.Is(err, table.ErrSuperseded) {
			t.Fatalf("the removed process has ended with %v", err)
		}
		j.program.mu.Lock()
		j.program.faults = nil // the new instance has not got the first messages
		j.program.mu.Unlock()
		j.start("n3")
		j.awaitProbe(3)
		for _, top := range j.tops[:2] {
			before := top.node.View().Edges[1].Handled
			awaitNode(t, top.node, "messages that n3 has handled", func(v *View) bool {
				return v.Edges[1].Handled > before && stateOf(v, "n3") == "member" && detectorOf(v, "n3") == "alive"
			})
		}
		for _, i := range []int{0, 1, 3} {
			j.stops[i]()
		}
		for _, i := range []int{0, 1, 3} {
			if err := j.end(i); err != nil {
				t.Errorf("process %d: %v", i+1, err)
			}
			if j.tops[i].node.core.left {
				t.Errorf("process %d has left alone", i+1)
			}
			for k, e := range j.tops[i].pool.Snapshot().Edges {
				if e.Len != 0 || e.Waiting != 0 || e.Sent != e.Received+e.Dropped {
					t.Errorf("process %d, edge %v: %+v", i+1, j.program.edges[k], e)
				}
			}
		}
	})
}
