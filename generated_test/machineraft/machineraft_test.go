package machineraft

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/topo"
)

// TestRun commits and applies on one node, and checks that another node passes its messages
// to its controller.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var applied, asked atomic.Int64
	seen := make(map[byte]bool)
	top, err := New(Processors{
		Clients: func(topo.Instance) (*Clients, error) {
			return &Clients{done: func() bool { return applied.Load() == commands && asked.Load() > 0 }}, nil
		},
		Replica: func(in topo.Instance) (*Replica, error) {
			return &Replica{index: in.Index, asked: make(map[uint64][]byte), wrong: t.Errorf, applied: func(data []byte) {
				if len(data) != 1 || seen[data[0]] {
					t.Errorf("%v is applied, after %v", data, seen)
				}
				seen[data[0]] = true
				applied.Add(1)
			}}, nil
		},
		Carrier: func(topo.Instance) (*Carrier, error) { return &Carrier{asked: func() { asked.Add(1) }}, nil },
		Consensus: func(topo.Instance) (*Consensus, error) {
			return NewConsensus(func(c *raft.Config) { c.Dir, c.Peers = dir+"/consensus", nil })
		},
		Carried: func(topo.Instance) (*Carried, error) {
			return NewCarried(func(c *raft.Config) { c.Dir, c.Node = dir, "n1" })
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := top.Tree().Edge(EdgeConsensusReplicaConsensusAnswer); e.Received() < commands {
		t.Errorf("%d answers", e.Received())
	}
}

// TestNoStepper checks that a Stepper refuses kind raft, whose nodes have goroutines of their
// own.
func TestNoStepper(t *testing.T) {
	t.Setenv("TOPOGEN_NODE", "")
	top, err := New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Stepper(1).Run(); err == nil || !strings.Contains(err.Error(), "kind raft") {
		t.Errorf("it ends with %v", err)
	}
}
