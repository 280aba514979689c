package machinelog

import (
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/topo"
)

// TestWhichNode: the file says who the nodes are, and not which of them this is.
func TestWhichNode(t *testing.T) {
	if _, err := New(Processors{}); err == nil || !strings.Contains(err.Error(), "n1, n2, n3") {
		t.Errorf("New returns %v", err)
	}
	t.Setenv("TOPOGEN_NODE", "n2")
	if _, err := New(Processors{}); err != nil {
		t.Errorf("New returns %v", err)
	}
}

// TestUnderAStepper: without a disk, in one goroutine.
func TestUnderAStepper(t *testing.T) {
	t.Setenv("TOPOGEN_NODE", "n1")
	for seed := range uint64(3) {
		answers := 0
		top, err := New(Processors{Bank: func(topo.Instance) (*Bank, error) {
			return &Bank{heard: func(m *LedgerOutcome) {
				if m.Err != nil {
					t.Error(m.Err)
				}
				answers++
			}}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		s := top.Stepper(seed)
		if err := s.Run(); err != nil || answers != transfers {
			t.Fatalf("%d answers, %v", answers, err)
		}
		s.Stop()
		if err := s.Run(); err != nil {
			t.Error(err)
		}
	}
}
