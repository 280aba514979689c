package border

import (
	"fmt"
	"testing"
)

// twoOthers are Nodes of which two others take part.
type twoOthers struct{ Nodes }

func (twoOthers) Others() int { return 2 }

// TestBranchesOfNodesThatLeft sends to nodes with more and more names. An Outlet keeps the branches
// whose messages are not settled, and few others.
func TestBranchesOfNodesThatLeft(t *testing.T) {
	b, _ := testBorder(t)
	b.nodes = twoOthers{}
	o := b.testOutlet()
	busy := o.toward("busy")
	busy.passed = append(busy.passed, passed{n: 1})
	for i := range 100 {
		if to := o.toward(fmt.Sprint("n", i)); to != o.active || to.Trunk() != o {
			t.Fatalf("the branch for n%d is not the active one", i)
		}
	}
	if o.branches["busy"] != busy || o.branches["n99"] != o.active {
		t.Error("a branch that is needed was dropped")
	}
	if n := len(o.branches); n > idleBranches+3 {
		t.Errorf("%d branches are kept", n)
	}
}
