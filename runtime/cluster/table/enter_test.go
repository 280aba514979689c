package table_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// late is a table whose first transaction arrives late: its answer is lost, and it is
// applied by arrive.
type late struct {
	table.Table
	arrive func()
	end    context.CancelFunc // of the process
}

func (l *late) Txn(ctx context.Context, guards []table.Guard, changes []table.Change) (table.Revision, error) {
	if l.arrive != nil {
		return l.Table.Txn(ctx, guards, changes)
	}
	l.arrive = func() { _, _ = l.Table.Txn(context.Background(), guards, changes) }
	if l.end != nil {
		l.end()
	}
	return table.Revision{}, table.ErrUnknown
}

func bootstrapped(t *testing.T) *table.Memory {
	t.Helper()
	m := table.NewMemory()
	o := m.Open()
	defer o.Close()
	list := []table.Placement{{Processor: table.Processor{Name: "counter", Instances: 2}}}
	if err := table.Bootstrap(t.Context(), o, table.Plan{Hash: "p"}, list, []table.Node{{Name: "n1"}}); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLateJoin: the join of a process that has ended arrives after the next process has
// joined. The next process remains.
func TestLateJoin(t *testing.T) {
	m := bootstrapped(t)
	ctx, cancel := context.WithCancel(t.Context())
	former := &late{Table: m.Open(), end: cancel}
	if err := table.Enter(ctx, former, table.Node{Name: "n1", Boot: 1, Plan: "p"}); !errors.Is(err, table.ErrUnknown) {
		t.Fatalf("Enter returned %v, want ErrUnknown", err)
	}
	next := m.Open()
	if err := table.Enter(t.Context(), next, table.Node{Name: "n1", Boot: 2, Plan: "p"}); err != nil {
		t.Fatal(err)
	}
	former.arrive()
	if n := next.Replica().Node("n1"); n.Boot != 2 || n.State != table.Member {
		t.Errorf("the table has the process %v, %v, want the newest one", n.Boot, n.State)
	}
}

// TestLostJoin: the answer to a join is lost, and the join was applied.
func TestLostJoin(t *testing.T) {
	m := bootstrapped(t)
	l := &late{Table: m.Open()}
	l.end = func() { l.arrive() }
	if err := table.Enter(t.Context(), l, table.Node{Name: "n1", Boot: 7, Plan: "p"}); err != nil {
		t.Fatal(err)
	}
	if n := l.Replica().Node("n1"); n.Boot != 7 || n.State != table.Member {
		t.Errorf("the table has the process %v, %v", n.Boot, n.State)
	}
}

// losing is a table that loses the process of a node once, after its join: another side of a cut,
// whose table remains, had the node with an earlier process, or without one.
type losing struct {
	table.Table
	*testing.T
	before table.Node
	calls  int
}

func (l *losing) Txn(ctx context.Context, guards []table.Guard, changes []table.Change) (table.Revision, error) {
	if l.calls++; l.calls == 2 {
		lost := []table.Change{table.Forget{Name: "n2"}, table.Join{Node: l.before}}
		if _, err := l.Table.Txn(ctx, nil, lost); err != nil {
			l.Error(err)
		}
	}
	return l.Table.Txn(ctx, guards, changes)
}

// TestAJoinIsLost: the table loses a process that has joined and is not a member yet. It joins again.
func TestAJoinIsLost(t *testing.T) {
	for _, before := range []table.Node{{Name: "n2"}, {Name: "n2", Boot: 5, Plan: "p"}} {
		o := bootstrapped(t).Open()
		if _, err := o.Txn(t.Context(), nil, []table.Change{table.Join{Node: before}}); err != nil {
			t.Fatal(err)
		}
		if err := table.Enter(t.Context(), &losing{Table: o, T: t, before: before}, table.Node{Name: "n2", Boot: 7, Plan: "p"}); err != nil {
			t.Fatal(err)
		}
		if n := o.Replica().Node("n2"); n.Boot != 7 || n.State != table.Member {
			t.Errorf("the table has the process %v, %v", n.Boot, n.State)
		}
	}
}

// TestEnterWaitsForTheFormerProcess: before a process replaces another one, it asks whether it may.
func TestEnterWaitsForTheFormerProcess(t *testing.T) {
	o := bootstrapped(t).Open()
	asked := []table.Boot{}
	alive := errors.New("it is alive")
	answer := error(nil)
	mayReplace := func(_ context.Context, former *table.Node) error {
		asked = append(asked, former.Boot)
		return answer
	}
	enter := func(boot table.Boot) error {
		return table.EnterWhen(t.Context(), o, table.Node{Name: "n1", Boot: boot, Plan: "p"}, mayReplace)
	}
	if err := enter(7); err != nil || len(asked) > 0 {
		t.Fatalf("the first process: %v, and it asked about %v", err, asked)
	}
	answer = alive
	if err := enter(8); !errors.Is(err, alive) || o.Replica().Node("n1").Boot != 7 {
		t.Errorf("the second process: %v, and the table has %v", err, o.Replica().Node("n1").Boot)
	}
	answer = nil
	if err := enter(8); err != nil || o.Replica().Node("n1").Boot != 8 {
		t.Errorf("the second process: %v, and the table has %v", err, o.Replica().Node("n1").Boot)
	}
	if want := []table.Boot{7, 7}; !slices.Equal(asked, want) {
		t.Errorf("they asked about %v, want %v", asked, want)
	}
}
