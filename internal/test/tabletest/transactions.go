package tabletest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// bootstrapHappensOnce bootstraps from all nodes at once, and again.
func bootstrapHappensOnce(t *testing.T, s *suite) {
	results := make(chan error, len(firstNames))
	for _, name := range firstNames {
		node := s.node(name)
		go func() { results <- table.Bootstrap(s.ctx, node, described, placements, firstNodes()) }()
	}
	for range firstNames {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
	want := s.same()
	v := s.node("n1").Replica().Snapshot()
	if len(v.Nodes) != 3 || len(v.Processors) != 2 || v.Plan != plan {
		t.Fatalf("the table after the bootstrap:\n%s", want)
	}
	_, founded := lookup(s.node("n2"), "audit", 0)
	for i := range 64 {
		if name, epoch := lookup(s.node("n2"), "counter", i); name == "" || epoch == 0 || epoch != founded {
			t.Fatalf("counter/%d is on %q with epoch %d after the bootstrap, want a node and epoch %d", i, name, epoch, founded)
		}
	}
	if name, _ := lookup(s.node("n2"), "audit", 1); name != "n1" {
		t.Errorf("audit/1 is on %q, want n1", name)
	}
	s.txn(s.node("n1"), nil, table.Assign{Processor: "counter", First: 3, Count: 1, Node: "n3"})
	moved := s.same()
	if err := table.Bootstrap(s.ctx, s.node("n2"), described, placements, firstNodes()); err != nil {
		t.Fatal(err)
	}
	if again := s.same(); again != moved {
		t.Errorf("a second bootstrap has changed the table from\n%s\nto\n%s", moved, again)
	}
	if err := table.Bootstrap(s.ctx, s.node("n3"), halved, placements, firstNodes()); !errors.Is(err, table.ErrPlan) || !strings.Contains(err.Error(), refusal) {
		t.Errorf("a bootstrap with another plan returned %v, want ErrPlan and: %s", err, refusal)
	}
}

// transactionsAreAtomic checks guards of all kinds.
func transactionsAreAtomic(t *testing.T, s *suite) {
	s.bootstrap()
	n1, n2 := s.node("n1"), s.node("n2")
	move := []table.Change{
		table.Assign{Processor: "counter", First: 0, Count: 2, Node: "n2"},
		table.Assign{Processor: "counter", First: 9, Count: 1, Node: "n3"},
	}
	epoch := func(instance int, epoch uint64) table.Guard {
		return table.EpochIs{Processor: "counter", Instance: instance, Epoch: epoch}
	}
	s.sync(n2)
	_, founded := lookup(n2, "counter", 0)
	for _, guards := range [][]table.Guard{
		{epoch(0, founded+1)},
		{epoch(0, founded), epoch(1, founded), epoch(9, founded-1)},
		{epoch(64, 0)},
		{table.EpochIs{Processor: "nothing", Instance: 0, Epoch: 0}},
		{table.PlanIs{Plan: ""}},
		{table.BootIs{Name: "n1", Boot: 7}},
		{table.StateIs{Name: "n1", State: table.Member}},
		{table.StateIs{Name: "n9", State: table.Joining}},
		{table.LeaseIs{Name: "rebalance", Token: 1}},
	} {
		s.refused(n2, table.ErrGuard, guards, move...)
	}
	var guard *table.GuardError
	if _, err := n2.Txn(s.ctx, []table.Guard{epoch(0, founded), epoch(1, founded+5)}, move); !errors.As(err, &guard) || guard.Index != 1 || guard.Got != fmt.Sprint(founded) {
		t.Errorf("got the error %v, want a GuardError for guard 1 with the epoch %d", err, founded)
	}
	revision := s.txn(n2, []table.Guard{
		epoch(0, founded), epoch(1, founded), epoch(9, founded), table.PlanIs{Plan: plan}, table.BootIs{Name: "n1"},
		table.StateIs{Name: "n1", State: table.Joining}, table.StateIs{Name: "n9", State: table.Forgotten},
	}, move...)
	if got := n2.Replica().Revision(); got.Compare(revision) < 0 {
		t.Errorf("the replica has revision %v after Txn returned %v", got, revision)
	}
	s.sync(n1)
	for _, want := range []struct {
		instance int
		node     string
	}{{0, "n2"}, {1, "n2"}, {9, "n3"}} {
		if name, epoch := lookup(n1, "counter", want.instance); name != want.node || epoch != revision.Index {
			t.Errorf("counter/%d is on %q with epoch %d, want %s and the index of %v", want.instance, name, epoch, want.node, revision)
		}
	}
}

// epochsDecideConflicts lets all nodes compete for the same containers.
func epochsDecideConflicts(t *testing.T, s *suite) {
	s.bootstrap()
	const rounds = 30
	var won atomic.Int64
	var last atomic.Uint64 // the highest index of a transaction that was applied
	results := make(chan error, len(firstNames))
	for _, name := range firstNames {
		node := s.node(name)
		go func() {
			results <- func() error {
				for range rounds {
					_, epoch := lookup(node, "counter", 0)
					_, other := lookup(node, "counter", 33)
					revision, err := node.Txn(s.ctx,
						[]table.Guard{table.EpochIs{Processor: "counter", Instance: 0, Epoch: epoch}, table.EpochIs{Processor: "counter", Instance: 33, Epoch: other}},
						[]table.Change{table.Assign{Processor: "counter", First: 0, Count: 1, Node: name}, table.Assign{Processor: "counter", First: 33, Count: 1, Node: name}})
					switch {
					case err == nil:
						won.Add(1)
						for at := last.Load(); at < revision.Index && !last.CompareAndSwap(at, revision.Index); at = last.Load() {
						}
					case !errors.Is(err, table.ErrGuard):
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range firstNames {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
	s.same()
	first, epoch := lookup(s.node("n1"), "counter", 0)
	second, other := lookup(s.node("n1"), "counter", 33)
	if want := last.Load(); epoch != want || other != want || first != second {
		t.Errorf("%d transactions were acknowledged, and the containers are on %s with epoch %d and on %s with epoch %d; want the same node and epoch %d", won.Load(), first, epoch, second, other, want)
	}
	if won.Load() < rounds {
		t.Errorf("%d transactions were acknowledged, want at least the %d of one node", won.Load(), rounds)
	}
}

// invalidTransactionsChangeNothing checks changes that the table must refuse.
func invalidTransactionsChangeNothing(t *testing.T, s *suite) {
	s.bootstrap()
	n2 := s.node("n2")
	assign := func(processor string, first, count int, node string) table.Change {
		return table.Assign{Processor: processor, First: first, Count: count, Node: node}
	}
	good := assign("counter", 0, 1, "n3")
	s.sync(n2)
	_, founded := lookup(n2, "counter", 0)
	for _, changes := range [][]table.Change{
		{good, assign("counter", 64, 1, "n1")},
		{good, assign("counter", 1, 64, "n1")},
		{good, assign("counter", 1, 0, "n1")},
		{good, assign("counter", -1, 1, "n1")},
		{good, assign("counter", 0, 2, "n1")},
		{good, assign("nothing", 0, 1, "n1")},
		{good, assign("counter", 1, 1, "n9")},
		{good, assign("counter", 1, 1, "")},
		{good, table.SetState{Name: "n1", State: table.Member}},
		{good, table.SetState{Name: "n1", State: table.Joining}},
		{good, table.SetState{Name: "n1", State: table.Forgotten}},
		{good, table.SetState{Name: "n9", State: table.Leaving}},
		{good, table.Forget{Name: "n9"}},
		{good, table.Join{Node: table.Node{Name: ""}}},
		{good, table.Join{Node: table.Node{Name: "n1"}}},
		{good, table.Join{Node: table.Node{Name: strings.Repeat("n", table.NameBytesMax+1)}}},
		{good, table.Join{Node: table.Node{Name: "n4", Roles: []string{"b", "a"}}}},
		{good, table.Join{Node: table.Node{Name: "n4", State: table.Member}}},
		{good, table.Define{Plan: "plan-2"}},
		{table.Define{Plan: ""}, good},
	} {
		if _, err := n2.Txn(s.ctx, nil, changes); err == nil {
			t.Errorf("the invalid transaction %v was applied", changes)
		}
	}
	if name, epoch := lookup(n2, "counter", 0); epoch != founded {
		t.Errorf("a refused transaction has moved counter/0 to %q with epoch %d", name, epoch)
	}
	s.refused(n2, table.ErrInUse, nil, table.Forget{Name: "n1"})
	s.refused(n2, table.ErrInUse, nil, table.SetState{Name: "n1", State: table.Left})
	large := make([]table.Change, table.ChangesMax+1)
	for i := range large {
		large[i] = good
	}
	s.refused(n2, table.ErrLimit, nil, large...)
	wide := make([]table.Guard, 5000)
	for i := range wide {
		wide[i] = table.BootIs{Name: strings.Repeat("n", 250)}
	}
	s.refused(n2, table.ErrLimit, wide, good)
	s.same()
}

// nodesJoinAndLeave lets 1,000 nodes join and leave, several at a time.
func nodesJoinAndLeave(t *testing.T, s *suite) {
	s.bootstrap()
	var last table.Revision
	const all, batch = 1000, 10
	for first := 0; first < all; first += batch {
		var join, member, assign, leave []table.Change
		for i := first; i < first+batch; i++ {
			name, boot := fmt.Sprintf("extra-%d", i), table.Boot(i+1)
			join = append(join, table.Join{Node: table.Node{Name: name, Address: name + ":1", Boot: boot, Plan: plan}})
			member = append(member, table.SetState{Name: name, Boot: boot, State: table.Member})
			assign = append(assign, table.Assign{Processor: "audit", First: i % 2, Count: 1, Node: name})
			leave = append(leave, table.SetState{Name: name, Boot: boot, State: table.Leaving}, table.SetState{Name: name, Boot: boot, State: table.Left}, table.Forget{Name: name})
		}
		node := s.node(firstNames[first/batch%3])
		s.txn(node, nil, append(join, member...)...)
		s.txn(node, nil, assign[0])
		s.refused(node, table.ErrInUse, nil, leave...)
		last = s.txn(node, nil, append([]table.Change{table.Assign{Processor: "audit", First: first % 2, Count: 1, Node: "n1"}}, leave...)...)
	}
	if got := len(s.node("n1").Replica().Nodes()); got != 3 {
		t.Errorf("%d nodes remain, want 3", got)
	}
	s.same()
	if name, epoch := lookup(s.node("n1"), "audit", 0); name != "n1" || epoch != last.Index {
		t.Errorf("audit/0 is on %q with epoch %d, want n1 and the index of %v", name, epoch, last)
	}
}
