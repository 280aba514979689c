package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// bootNodes are places with the boot ids of an address table.
type bootNodes struct {
	sameNodes
	boots map[string]uint64
}

func (n bootNodes) Boot(name string) (uint64, bool) { return n.boots[name], n.boots[name] != 0 }

// TestSessionsFollowTheTable replaces the process of a node in the address table of another node. The former
// process must be refused from then on, and end. The next one is accepted when the table has it, and not before.
func TestSessionsFollowTheTable(t *testing.T) {
	n := newPhaseNodes(t, "n1", "n2")
	places := bootNodes{n.nodes, map[string]uint64{"n1": 1, "n2": 2}}
	n.start("n1").open = true
	n.start("n2").open = true
	n1, former := n.cores["n1"], n.cores["n2"]
	n1.places = places
	n.run()
	p := n1.peers["n2"]
	if !p.found || p.boot != 2 {
		t.Fatalf("n1 has found a process: %v, with the boot id %d in the table", p.found, p.boot)
	}
	places.boots["n2"] = 3 // it has not said anything yet
	n.run()
	if p.found {
		t.Error("n1 still has the former process")
	}
	if !errors.Is(former.failed, table.ErrSuperseded) || n1.failed != nil {
		t.Errorf("the former process ends with %v, and n1 with %v", former.failed, n1.failed)
	}
	n.start("n2").open = true // it has the boot id 3
	n.run()
	if !p.found || n.cores["n2"].failed != nil {
		t.Errorf("n1 has found the next process: %v, which ends with %v", p.found, n.cores["n2"].failed)
	}
	n.start("n2").open = true // it has the boot id 4, and is not in the table of n1 yet
	n.cores["n2"].peer("n1").send(laneControl, []byte{controlDraining})
	n.run()
	if p.draining {
		t.Error("n1 has accepted a process that its table does not have")
	}
	places.boots["n2"] = 4
	n.run()
	if !p.draining || n.cores["n2"].failed != nil {
		t.Errorf("n1 has accepted the process that its table has: %v; the process ends with %v", p.draining, n.cores["n2"].failed)
	}
}

// TestFormerProcessIsNoSignOfLife sends n1 frames of a process that the table has replaced. They must not let
// the node seem to be alive.
func TestFormerProcessIsNoSignOfLife(t *testing.T) {
	n := newPhaseNodes(t, "n1", "n2")
	places := bootNodes{n.nodes, map[string]uint64{"n1": 1, "n2": 2}}
	n.start("n1").open = true
	n.start("n2").open = true
	n1, former := n.cores["n1"], n.cores["n2"]
	n1.places = places
	n.run()
	places.boots["n2"] = 3
	n1.step(n.now, &happened{members: true})
	p := n1.peers["n2"]
	p.heard = false
	p.silent = true
	former.sendAll(laneControl, []byte{controlDraining})
	former.step(n.now, &happened{})
	if len(n.frames["n1"]) == 0 {
		t.Fatal("the former process sends no frame")
	}
	n1.step(n.now+time.Millisecond, &happened{frames: n.frames["n1"]})
	if p.heard || !p.silent {
		t.Error("a frame of a former process counts as a sign of life")
	}
}
