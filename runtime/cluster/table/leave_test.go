package table_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// TestLeave lets 200 nodes with names of their own join and leave. The table must not keep
// all of them, and must keep a node that has come back.
func TestLeave(t *testing.T) {
	ctx := context.Background()
	node := table.NewMemory().Open()
	defer node.Close()
	if err := table.Bootstrap(ctx, node, table.Plan{Hash: "p"}, []table.Placement{{Processor: table.Processor{Name: "a", Instances: 1}}}, []table.Node{{Name: "first"}}); err != nil {
		t.Fatal(err)
	}
	join := func(name string, boot table.Boot) {
		t.Helper()
		if err := table.Enter(ctx, node, table.Node{Name: name, Boot: boot, Plan: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	leave := func(name string, boot table.Boot) {
		t.Helper()
		if err := table.Leave(ctx, node, name, boot); err != nil {
			t.Fatal(err)
		}
	}
	join("n000", 1)
	leave("n000", 1)
	join("n000", 2)
	for i := range 200 {
		name := fmt.Sprintf("n%03d", i+1)
		join(name, 1)
		leave(name, 1)
	}
	left := 0
	for _, n := range node.Replica().Nodes() {
		if n.State == table.Left {
			left++
		}
	}
	if left == 0 || left > 64 {
		t.Errorf("the table keeps %d nodes that have left, want 1 to 64", left)
	}
	if n := node.Replica().Node("n000"); n == nil || n.State != table.Member {
		t.Errorf("a node that has come back is %v", n)
	}
	if n := node.Replica().Node("n200"); n == nil || n.State != table.Left {
		t.Errorf("the last node is %v, want left", n)
	}
}
