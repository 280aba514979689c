package tabletest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// lateNodeGetsEverything opens the table on a node that was not there before.
func lateNodeGetsEverything(t *testing.T, s *suite) {
	s.bootstrap()
	for i := range 50 {
		s.txn(s.node("n1"), nil, table.Assign{Processor: "counter", First: i, Count: 3, Node: firstNames[i%3]})
	}
	late := s.node("n4")
	s.sync(late)
	want := describe(s.node("n1").Replica().Snapshot())
	if got := describe(late.Replica().Snapshot()); got != want {
		t.Fatalf("the late node has the table\n%s\nwant\n%s", got, want)
	}
	boot := table.NewBoot()
	if err := table.Enter(s.ctx, late, table.Node{Name: "n4", Address: "n4:7400", Roles: []string{"disks"}, Boot: boot, Plan: plan}); err != nil {
		t.Fatal(err)
	}
	if n := late.Replica().Node("n4"); n == nil || n.State != table.Member || n.Boot != boot || len(n.Roles) != 1 {
		t.Fatalf("the late node is %+v in its table", n)
	}
	last := s.txn(late, nil, table.Assign{Processor: "counter", First: 0, Count: 64, Node: "n4"})
	n1 := s.node("n1")
	if err := n1.Replica().Wait(s.ctx, last); err != nil {
		t.Fatal(err)
	}
	if name, _ := lookup(n1, "counter", 63); name != "n4" {
		t.Errorf("counter/63 is on %q, want n4", name)
	}
	s.same()
}

// otherPlanIsRefused checks that a node with another topology cannot join.
func otherPlanIsRefused(t *testing.T, s *suite) {
	s.bootstrap()
	n2 := s.node("n2")
	err := table.Enter(s.ctx, n2, table.Node{Name: "n2", Address: "n2:7400", Boot: table.NewBoot(), Plan: "plan-2"})
	refused := new(table.PlanError)
	if !errors.Is(err, table.ErrPlan) || !errors.As(err, &refused) || refused.Cluster != described {
		t.Fatalf("a node with another plan got the error %v, want a PlanError with the plan of the cluster", err)
	}
	s.sync(n2)
	if n := n2.Replica().Node("n2"); n.Boot != 0 {
		t.Errorf("the refused node has changed the table to %+v", n)
	}
	_, founded := lookup(n2, "counter", 11)
	s.txn(n2, []table.Guard{table.PlanIs{Plan: plan}}, table.Define{Plan: "plan-2", Processors: []table.Processor{{Name: "counter", Instances: 32}, {Name: "new", Instances: 1}}})
	if err := table.Enter(s.ctx, n2, table.Node{Name: "n2", Address: "n2:7400", Boot: table.NewBoot(), Plan: "plan-2"}); err != nil {
		t.Fatalf("the node was refused after the plan was replaced: %v", err)
	}
	if name, epoch := lookup(n2, "new", 0); name != "" || epoch != founded {
		t.Errorf("new/0 is on %q with epoch %d, want no place and the last epoch %d", name, epoch, founded)
	}
	for instance, want := range map[int]string{11: "n1", 31: "n2"} { // the process of n2 is new
		if name, epoch := lookup(n2, "counter", instance); name != want || (epoch == founded) != (name == "n1") {
			t.Errorf("counter/%d is on %q with epoch %d, want its previous place", instance, name, epoch)
		}
	}
	s.same()
}

// newestProcessHasTheName starts two processes with one name.
func newestProcessHasTheName(t *testing.T, s *suite) {
	s.bootstrap()
	n2, n3 := s.node("n2"), s.node("n3")
	old, boot := table.NewBoot(), table.NewBoot()
	node := table.Node{Name: "n2", Address: "n2:7400", Boot: old, Plan: plan}
	if err := table.Enter(s.ctx, n2, node); err != nil {
		t.Fatal(err)
	}
	epochs := func(r table.Table) (list []uint64) { // of an instance of n2, of one of n1, and of the process
		s.sync(r)
		_, here := lookup(r, "counter", 31)
		_, other := lookup(r, "counter", 0)
		return append(list, here, other, r.Replica().Node("n2").Epoch)
	}
	before := epochs(n3)
	s.txn(n3, []table.Guard{table.EpochIs{Processor: "counter", Instance: 31, Epoch: before[0]}}, table.Join{Node: node})
	if again := epochs(n3); !slices.Equal(again, before) {
		t.Errorf("a Join of the process that is in the table has changed its epochs from %v to %v", before, again)
	}
	superseded := make(chan error, 1)
	go func() { superseded <- table.Superseded(s.ctx, n2.Replica(), "n2", old) }()
	node.Boot = boot
	if err := table.Enter(s.ctx, n3, node); err != nil {
		t.Fatal(err)
	}
	if err := <-superseded; !errors.Is(err, table.ErrSuperseded) {
		t.Errorf("the older process got %v, want ErrSuperseded", err)
	}
	after := epochs(n3)
	if after[0] <= before[0] || after[1] != before[1] || after[2] != after[0] {
		t.Errorf("the epochs of an instance of n2, of one of n1, and of the process are %v after the replacement, and were %v", after, before)
	}
	s.refused(n3, table.ErrGuard, []table.Guard{table.EpochIs{Processor: "counter", Instance: 31, Epoch: before[0]}}, table.Assign{Processor: "counter", First: 31, Count: 1, Node: "n1"})
	s.refused(n2, table.ErrSuperseded, nil, table.SetState{Name: "n2", Boot: old, State: table.Leaving})
	s.refused(n2, table.ErrGuard, []table.Guard{table.BootIs{Name: "n2", Boot: old}}, table.Assign{Processor: "counter", First: 0, Count: 1, Node: "n2"})
	if n := n3.Replica().Node("n2"); n.Boot != boot || n.State != table.Member {
		t.Errorf("the newest process is %+v in the table", n)
	}
	s.same()
}

// removedNodeIsGone removes a node that has joined, and lets it join again.
func removedNodeIsGone(t *testing.T, s *suite) {
	s.bootstrap()
	n1, n2 := s.node("n1"), s.node("n2")
	boot := table.NewBoot()
	node := table.Node{Name: "n4", Address: "n4:7400", Boot: boot, Plan: plan}
	if err := table.Enter(s.ctx, n2, node); err != nil {
		t.Fatal(err)
	}
	superseded := make(chan error, 1)
	go func() { superseded <- table.Superseded(s.ctx, n2.Replica(), "n4", boot) }()
	s.sync(n1)
	if err := table.Remove(s.ctx, n1, "n4", boot+1); !errors.Is(err, table.ErrGuard) || n1.Replica().Node("n4") == nil {
		t.Errorf("another process was removed in place of a former one: %v", err)
	}
	if err := table.Remove(s.ctx, n1, "n2", n1.Replica().Node("n2").Boot); !errors.Is(err, table.ErrInUse) {
		t.Errorf("a node with containers was removed: %v, want ErrInUse", err)
	}
	for range 2 { // the answer to the first one may be lost
		if err := table.Remove(s.ctx, n1, "n4", boot); err != nil || n1.Replica().Node("n4") != nil {
			t.Fatalf("the node was not removed: %v", err)
		}
	}
	want := "table: node \"n4\" was removed from the address table; start it again to join as a new process"
	if err := <-superseded; !errors.Is(err, table.ErrSuperseded) || err.Error() != want {
		t.Errorf("the removed process got %v, want %s", err, want)
	}
	s.refused(n2, table.ErrInvalid, nil, table.SetState{Name: "n4", Boot: boot, State: table.Left})
	node.Boot = table.NewBoot()
	if err := table.Enter(s.ctx, n2, node); err != nil {
		t.Fatalf("the next process cannot join: %v", err)
	}
	s.same()
}

// closedTableRefuses uses a table after Close.
func closedTableRefuses(t *testing.T, s *suite) {
	s.bootstrap()
	node := s.node("n3")
	w := node.Replica().Watch(node.Replica().Revision())
	waiting := make(chan error, 1)
	go func() {
		for {
			if _, err := w.Next(s.ctx); err != nil {
				waiting <- err
				return
			}
		}
	}()
	s.stop("n3")
	if err := <-waiting; !errors.Is(err, table.ErrClosed) {
		t.Errorf("a watcher of a closed table got %v, want ErrClosed", err)
	}
	<-node.Done()
	if err := node.Err(); !errors.Is(err, table.ErrClosed) {
		t.Errorf("Err of a closed table returned %v, want ErrClosed", err)
	}
	if _, err := node.Txn(s.ctx, nil, []table.Change{table.Forget{Name: "n1"}}); err == nil {
		t.Error("a closed table has applied a transaction")
	}
	if err := node.Sync(s.ctx); err == nil {
		t.Error("Sync of a closed table returned no error")
	}
	if err := node.Close(); err != nil {
		t.Errorf("a second Close returned %v", err)
	}
	if name, _ := lookup(node, "counter", 0); name == "" {
		t.Error("a lookup in a closed table found nothing; it should find the last known place")
	}
}

// tableSurvivesRestart stops all nodes and starts them again.
func tableSurvivesRestart(t *testing.T, s *suite) {
	s.bootstrap()
	for i := range 20 {
		s.txn(s.node(firstNames[i%3]), nil, table.Assign{Processor: "counter", First: 2 * i, Count: 2, Node: firstNames[(i+1)%3]})
	}
	want := s.same()
	revision := s.node("n1").Replica().Revision()
	for range 2 {
		s.closeAll()
		for _, name := range firstNames {
			s.node(name)
		}
		if got := s.same(); got != want {
			t.Fatalf("after a restart the table is\n%s\nwant\n%s", got, want)
		}
	}
	last := s.txn(s.node("n1"), nil, table.Assign{Processor: "counter", First: 0, Count: 1, Node: "n3"})
	if last.Compare(revision) <= 0 {
		t.Errorf("the first transaction after a restart has revision %v, and the last one before it %v", last, revision)
	}
	s.same()
}

// minorityMayStop stops one of three nodes.
func minorityMayStop(t *testing.T, s *suite) {
	s.bootstrap()
	s.same()
	s.stop("n2")
	var last table.Revision
	for i := range 20 {
		last = s.txn(s.node("n1"), nil, table.Assign{Processor: "counter", First: i, Count: 1, Node: "n3"})
	}
	s.node("n2")
	s.same()
	if name, epoch := lookup(s.node("n2"), "counter", 19); name != "n3" || epoch != last.Index {
		t.Errorf("the node that was stopped finds counter/19 on %q with epoch %d, want n3 and the index of %v", name, epoch, last)
	}
}

// minorityCannotWrite cuts one node off. Both sides try to move the same container.
func minorityCannotWrite(t *testing.T, s *suite) {
	network, ok := s.cluster.(Cutter)
	if !ok {
		t.Skip("the nodes of this engine do not talk to each other, so none can be cut off")
	}
	s.bootstrap()
	s.same()
	_, founded := lookup(s.node("n1"), "counter", 0)
	move := func(to string) ([]table.Guard, table.Change) {
		return []table.Guard{table.EpochIs{Processor: "counter", Instance: 0, Epoch: founded}}, table.Assign{Processor: "counter", First: 0, Count: 1, Node: to}
	}
	network.Cut("n1", true)
	short, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	guards, change := move("n3")
	if revision, err := s.node("n1").Txn(short, guards, []table.Change{change}); err == nil {
		t.Errorf("a node that is cut off has changed the table at revision %v", revision)
	}
	guards, change = move("n2")
	last := s.txn(s.node("n2"), guards, change)
	network.Cut("n1", false)
	s.same()
	for _, name := range firstNames {
		if place, epoch := lookup(s.node(name), "counter", 0); place != "n2" || epoch != last.Index {
			t.Errorf("after the cut %s finds counter/0 on %s with epoch %d, want n2 and the index of %v", name, place, epoch, last)
		}
	}
}
