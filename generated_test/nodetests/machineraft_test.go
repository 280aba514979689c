package nodetests_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/generated_test/machineraft"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/topo"
)

// TestMachineRaftRun commits and applies on one node, and checks that another node passes its messages
// to its controller.
func TestMachineRaftRun(t *testing.T) {
	dir := t.TempDir()
	var applied, asked atomic.Int64
	seen := make(map[byte]bool)
	top, err := machineraft.New(machineraft.Processors{
		Clients: func(topo.Instance) (*machineraft.Clients, error) {
			return &machineraft.Clients{Done: func() bool { return applied.Load() == machineraft.Commands && asked.Load() > 0 }}, nil
		},
		Replica: func(in topo.Instance) (*machineraft.Replica, error) {
			return &machineraft.Replica{Index: in.Index, Asked: make(map[uint64][]byte), Wrong: t.Errorf, Applied: func(data []byte) {
				if len(data) != 1 || seen[data[0]] {
					t.Errorf("%v is applied, after %v", data, seen)
				}
				seen[data[0]] = true
				applied.Add(1)
			}}, nil
		},
		Carrier: func(topo.Instance) (*machineraft.Carrier, error) {
			return &machineraft.Carrier{Asked: func() { asked.Add(1) }}, nil
		},
		Consensus: func(topo.Instance) (*machineraft.Consensus, error) {
			return machineraft.NewConsensus(func(c *raft.Config) { c.Dir, c.Peers = dir+"/consensus", nil })
		},
		Carried: func(topo.Instance) (*machineraft.Carried, error) {
			return machineraft.NewCarried(func(c *raft.Config) { c.Dir, c.Node = dir, "n1" })
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := top.Tree().Edge(machineraft.EdgeConsensusReplicaConsensusAnswer); e.Received() < machineraft.Commands {
		t.Errorf("%d answers", e.Received())
	}
}

// TestMachineRaftNoStepper checks that a Stepper refuses kind raft, whose nodes have goroutines of their
// own.
func TestMachineRaftNoStepper(t *testing.T) {
	t.Setenv("TOPOGEN_NODE", "")
	top, err := machineraft.New(machineraft.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Stepper(1).Run(); err == nil || !strings.Contains(err.Error(), "kind raft") {
		t.Errorf("it ends with %v", err)
	}
}
