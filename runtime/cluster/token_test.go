package cluster

import (
	"testing"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// TestFencingTokens lets a second process take the name of a node. Each of the two has tokens of its own, for
// instances with entries in the table, instances that are placed with them, and those of every node.
func TestFencingTokens(t *testing.T) {
	s := settings{node: "n1", Config: Config{Plan: "plan", Processors: []Processor{
		{Name: "counter", Instances: 2, With: 0},
		{Name: "audit", Instances: 2, With: 0},
		{Name: "radio", Instances: 1, Placement: EveryNode, With: 2},
		{Name: "outside", With: 3},
	}}}
	memory := table.NewMemory()
	tab := memory.Open()
	defer tab.Close()
	if err := table.Bootstrap(t.Context(), tab, table.Plan{Hash: "plan"}, s.placements(), []table.Node{{Name: "n1"}, {Name: "n2"}}); err != nil {
		t.Fatal(err)
	}
	join := func(node string) *lookup {
		t.Helper()
		boot := table.NewBoot()
		if err := table.Enter(t.Context(), tab, table.Node{Name: node, Boot: boot, Plan: "plan"}); err != nil {
			t.Fatal(err)
		}
		own := s
		own.node = node
		l, err := newLookup(&own, tab.Replica())
		if err != nil {
			t.Fatal(err)
		}
		l.enter(boot)
		return l
	}
	tokens := func(l *lookup) (list [4]uint64) { // counter and audit of n1, radio, and a counter of n2
		return [4]uint64{l.FencingToken(0, 0), l.FencingToken(1, 0), l.FencingToken(2, 0), l.FencingToken(0, 1)}
	}
	first := join("n1")
	other := tokens(join("n2"))
	before := tokens(first)
	if before[0] == 0 || before[0] != before[1] || before[0] != before[2] {
		t.Errorf("the first process has the tokens %v", before)
	}
	second := join("n1")
	if again := tokens(first); again != before {
		t.Errorf("after it was replaced, the first process has the tokens %v, and had %v", again, before)
	}
	for i, token := range tokens(second) {
		if token <= before[i] {
			t.Errorf("the second process has the token %d, and the first one has %d", token, before[i])
		}
	}
	move := []table.Change{table.Assign{Processor: "counter", First: 1, Count: 1, Node: "n1"}}
	revision, err := tab.Txn(t.Context(), nil, move)
	if err != nil {
		t.Fatal(err)
	}
	if after := tokens(second); after[3] != revision.Index || after[3] <= other[3] || after[0] >= after[3] {
		t.Errorf("after %v has moved an instance to it, the process has the tokens %v", revision, after)
	}
	if again := tokens(first); again != before {
		t.Errorf("the first process has got the tokens %v of another process", again)
	}
}
