package cluster

import (
	"fmt"
	"slices"
	"testing"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper/border"
)

// newTableOf returns an address table with nodes, n1 first.
func newTableOf(tb testing.TB, nodes int) table.Table {
	t := table.NewMemory().Open()
	tb.Cleanup(func() { _ = t.Close() })
	var list []table.Node
	for i := range nodes {
		list = append(list, table.Node{Name: nodeName(i), Address: fmt.Sprintf("127.0.0.1:%d", 1+i)})
	}
	if err := table.Bootstrap(tb.Context(), t, table.Plan{Hash: "plan"}, nil, list); err != nil {
		tb.Fatal(err)
	}
	return t
}

// TestMembersFollowTheTable lets a node join and leave. The list of members must follow,
// and must be made only when the nodes have changed.
func TestMembersFollowTheTable(t *testing.T) {
	tab := newTableOf(t, 3)
	l, err := newLookup(&settings{node: "n1"}, tab.Replica())
	if err != nil {
		t.Fatal(err)
	}
	check := func(want ...string) {
		t.Helper()
		got := l.Members()
		if !slices.Equal(got, want) {
			t.Errorf("the members are %v, want %v", got, want)
		}
		if again := l.Members(); &again[0] != &got[0] {
			t.Error("the list was made a second time")
		}
	}
	check("n1", "n2", "n3")
	guest := table.Node{Name: "n0", Address: "127.0.0.1:99", Boot: table.NewBoot(), Plan: "plan"}
	if err := table.Enter(t.Context(), tab, guest); err != nil {
		t.Fatal(err)
	}
	check("n0", "n1", "n2", "n3")
	if err := table.Leave(t.Context(), tab, guest.Name, guest.Boot); err != nil {
		t.Fatal(err)
	}
	check("n1", "n2", "n3")
}

// BenchmarkBroadcast measures how a node finds the ends for one chunk to all nodes.
func BenchmarkBroadcast(b *testing.B) {
	for _, nodes := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			l, err := newLookup(&settings{node: "n1"}, newTableOf(b, nodes).Replica())
			if err != nil {
				b.Fatal(err)
			}
			n := newPhaseNodes(nil, "n1")
			n.start("n1")
			core := n.cores["n1"]
			core.places = l
			c := &cast{outlet: new(border.Outlet)}
			k := &castChunk{outlet: c.outlet}
			for b.Loop() {
				if got := len(c.endsFor(core.core, k)); got != nodes-1 {
					b.Fatalf("%d nodes get the chunk, want %d", got, nodes-1)
				}
			}
		})
	}
}

// BenchmarkCoordinator measures what each report that a group is quiet needs.
func BenchmarkCoordinator(b *testing.B) {
	for _, nodes := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			l, err := newLookup(&settings{node: "n1"}, newTableOf(b, nodes).Replica())
			if err != nil {
				b.Fatal(err)
			}
			n := newPhaseNodes(nil, "n1")
			n.start("n1")
			core := n.cores["n1"]
			core.places = l
			for b.Loop() {
				if got := core.coordinator(); got != "n1" {
					b.Fatalf("the coordinator is %s, want n1", got)
				}
			}
		})
	}
}
