package table_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
)

// renewal returns a command that renews one lease.
func renewal(name string, token uint64) *table.Command {
	return &table.Command{Kind: table.CommandRenew, Renewals: []table.Renewal{{Name: name, Token: token}}}
}

// drawCommand returns a random command. Most commands are valid.
func drawCommand(t *rapid.T) *table.Command {
	node := rapid.SampledFrom([]string{"n1", "n2", "n3", "n4"})
	processor := rapid.SampledFrom([]string{"a", "b", "c"})
	boot := rapid.SampledFrom([]table.Boot{0, 1, 2})
	number := rapid.IntRange(0, 6)
	plan := rapid.SampledFrom([]string{"p", "q"})
	lease := rapid.SampledFrom([]string{"x", "y"})
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return &table.Command{Kind: table.CommandAcquire, Name: lease.Draw(t, "lease"), Holder: node.Draw(t, "holder"), TTL: time.Second}
	case 1:
		if rapid.Bool().Draw(t, "release") {
			return &table.Command{Kind: table.CommandRelease, Name: lease.Draw(t, "lease"), Token: uint64(number.Draw(t, "token"))}
		}
		return renewal(lease.Draw(t, "lease"), uint64(number.Draw(t, "token")))
	}
	c := &table.Command{Kind: table.CommandTxn}
	for range rapid.IntRange(0, 1).Draw(t, "guards") {
		c.Guards = append(c.Guards, []table.Guard{
			table.PlanIs{Plan: plan.Draw(t, "plan")},
			table.EpochIs{Processor: processor.Draw(t, "processor"), Instance: number.Draw(t, "instance"), Epoch: uint64(number.Draw(t, "epoch"))},
			table.BootIs{Name: node.Draw(t, "node"), Boot: boot.Draw(t, "boot")},
			table.StateIs{Name: node.Draw(t, "node"), State: table.NodeState(rapid.IntRange(0, 4).Draw(t, "state"))},
			table.LeaseIs{Name: lease.Draw(t, "lease"), Token: uint64(number.Draw(t, "token"))},
			table.ProcessesAre{Hash: new(table.HashProcesses).Sum()},
		}[rapid.IntRange(0, 5).Draw(t, "guard")])
	}
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		c.Changes = append(c.Changes, []func() table.Change{
			func() table.Change {
				return table.Join{Node: table.Node{Name: node.Draw(t, "node"), Boot: boot.Draw(t, "boot"), Plan: plan.Draw(t, "plan")}}
			},
			func() table.Change { return table.Join{Node: table.Node{Name: node.Draw(t, "node")}} },
			func() table.Change {
				return table.SetState{Name: node.Draw(t, "node"), Boot: boot.Draw(t, "boot"), State: table.NodeState(rapid.IntRange(0, 4).Draw(t, "state"))}
			},
			func() table.Change { return table.Forget{Name: node.Draw(t, "node")} },
			func() table.Change {
				return table.Assign{Processor: processor.Draw(t, "processor"), First: number.Draw(t, "first"), Count: number.Draw(t, "count"), Node: node.Draw(t, "node")}
			},
			func() table.Change {
				if rapid.Bool().Draw(t, "agree") {
					return table.Agree{Groups: []table.GroupPhase{{Group: number.Draw(t, "group"), Phase: byte(number.Draw(t, "phase"))}}}
				}
				d := table.Define{Plan: plan.Draw(t, "plan"), Description: rapid.SampledFrom([]string{"", "processor a ="}).Draw(t, "description")}
				for _, name := range rapid.SliceOfDistinct(processor, rapid.ID[string]).Draw(t, "processors") {
					d.Processors = append(d.Processors, table.Processor{Name: name, Instances: number.Draw(t, "instances")})
				}
				return d
			},
		}[min(rapid.IntRange(0, 8).Draw(t, "change"), 5)]())
	}
	return c
}

// TestStates applies random commands to a state and to states that are restored from its
// snapshots. All have the same outcomes and encodings. Refused commands change nothing,
// epochs grow, and events lead from one snapshot to the next.
func TestStates(t *testing.T) {
	speed.Checks(t, 40, 100, 10_000)
	rapid.Check(t, func(t *rapid.T) {
		s, other := table.NewState(), table.NewState()
		epochs := map[string]uint64{}
		now := int64(0)
		for i := range rapid.IntRange(1, 40).Draw(t, "commands") {
			c := drawCommand(t)
			b, err := table.AppendCommand(nil, c)
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := table.ReadCommand(b)
			if err != nil {
				t.Fatalf("%+v cannot be decoded: %v", c, err)
			}
			if diff := cmp.Diff(c, decoded); diff != "" {
				t.Fatalf("a decoded command differs: %s", diff)
			}
			now += int64(rapid.IntRange(0, 3000).Draw(t, "ms")) * 1e6
			revision := table.Revision{Term: 1, Index: uint64(i + 1)}
			before := s.Snapshot()
			out, e := s.Apply(revision, now, c)
			again, _ := other.Apply(revision, now, decoded)
			if out != again {
				t.Fatalf("two equal states answered %+v and %+v to %+v", out, again, c)
			}
			after := s.Snapshot()
			if e == nil {
				before.Revision = after.Revision
				if diff := cmp.Diff(before, after); diff != "" {
					t.Fatalf("command %+v with outcome %+v and without an event has changed the state: %s", c, out, diff)
				}
			}
			if out.Err(c) != nil && e != nil {
				t.Fatalf("the refused command %+v has the event %+v", c, e)
			}
			checkEpochs(t, after, epochs, e)
			if rapid.IntRange(0, 3).Draw(t, "restore") == 0 {
				if other, err = table.ReadState(s.Append(nil)); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(s.Append(nil), other.Append(nil)) {
				t.Fatalf("equal states have different encodings after %+v", c)
			}
		}
	})
}

// checkEpochs checks that the places agree with the moves of an event, and that epochs
// never come back.
func checkEpochs(t *rapid.T, v *table.Snapshot, epochs map[string]uint64, e *table.Event) {
	moved := map[string]bool{}
	joined := map[string]uint64{}
	if e != nil {
		for _, n := range e.Nodes {
			joined[n.Name] = n.Epoch
		}
		for _, m := range e.Moves {
			for i := m.First; i < m.First+m.Count; i++ {
				key := fmt.Sprint(m.Processor, i)
				if moved[key] = true; m.Epoch <= epochs[key] {
					t.Fatalf("%s moved with epoch %d after epoch %d", key, m.Epoch, epochs[key])
				}
			}
		}
	}
	names := map[string]bool{"": true}
	for _, n := range v.Nodes {
		names[n.Name] = true
	}
	for _, p := range v.Processors {
		for _, r := range p.Runs {
			if !names[r.Node] {
				t.Fatalf("%s/%d is on the unknown node %q", p.Name, r.First, r.Node)
			}
			for i := r.First; i < r.First+r.Count; i++ {
				key := fmt.Sprint(p.Name, i)
				defined := e != nil && e.Define != nil
				if r.Epoch < epochs[key] || r.Epoch != epochs[key] && !moved[key] && !defined && (r.Epoch != joined[r.Node] || r.Epoch != v.Revision.Index) {
					t.Fatalf("%s went from epoch %d to %d in the event %+v", key, epochs[key], r.Epoch, e)
				}
				epochs[key] = r.Epoch
			}
		}
	}
}

// TestLookupDuringChanges moves a container to a new node again and again, and forgets the
// previous node, so that the numbers of nodes are reused at once. Each lookup must find a
// node that fits the epoch.
func TestLookupDuringChanges(t *testing.T) {
	s := table.NewState()
	revision := table.Revision{}
	apply := func(changes ...table.Change) {
		revision.Index++
		c := &table.Command{Kind: table.CommandTxn, Changes: changes}
		if out, _ := s.Apply(revision, 0, c); out.Err(c) != nil {
			t.Errorf("%v: %v", changes, out.Err(c))
		}
	}
	processors := []table.Processor{{Name: "a", Instances: 1}, {Name: "b", Instances: 4}}
	apply(table.Define{Plan: "p", Processors: processors})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			last := uint64(0)
			for {
				select {
				case <-stop:
					return
				default:
				}
				n, epoch := s.Lookup(0, 0)
				if n == nil && epoch == 0 {
					continue
				}
				if n == nil || n.Name != fmt.Sprint("n", epoch-1) || epoch < last {
					t.Errorf("after epoch %d, a lookup found %+v with epoch %d", last, n, epoch)
					return
				}
				last = epoch
			}
		})
	}
	for i := range 3000 {
		name := fmt.Sprint("n", i+1)
		changes := []table.Change{table.Join{Node: table.Node{Name: name}}, table.Assign{Processor: "a", First: 0, Count: 1, Node: name}}
		if i > 0 {
			changes = append(changes, table.Forget{Name: fmt.Sprint("n", i)})
		}
		if i%7 == 0 { // the list of processors changes as well
			processors[1].Instances = i % 5
			changes = append([]table.Change{table.Define{Plan: "p", Processors: processors}}, changes...)
		}
		apply(changes...)
	}
	close(stop)
	readers.Wait()
}

// stateWith returns a state after transactions.
func stateWith(t *testing.T, transactions ...[]table.Change) *table.State {
	t.Helper()
	s := table.NewState()
	for i, changes := range transactions {
		applyTo(t, s, uint64(i+1), changes...)
	}
	return s
}

func applyTo(t *testing.T, s *table.State, index uint64, changes ...table.Change) {
	t.Helper()
	c := &table.Command{Kind: table.CommandTxn, Changes: changes}
	if out, _ := s.Apply(table.Revision{Index: index}, 0, c); out.Err(c) != nil {
		t.Fatal(out.Err(c))
	}
}

// TestEpochsOfRemovedContainers removes a processor and defines it again, with a snapshot
// in between: the epochs of its containers go on from the last one.
func TestEpochsOfRemovedContainers(t *testing.T) {
	one := table.Assign{Processor: "a", First: 0, Count: 1, Node: "n1"}
	s := stateWith(t,
		[]table.Change{table.Define{Plan: "p", Processors: []table.Processor{{Name: "a", Instances: 2}}}, table.Join{Node: table.Node{Name: "n1"}}},
		[]table.Change{one}, []table.Change{one}, []table.Change{one},
		[]table.Change{table.Define{Plan: "q"}})
	s, err := table.ReadState(s.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	applyTo(t, s, 9, table.Define{Plan: "r", Processors: []table.Processor{{Name: "a", Instances: 2}}}, one)
	if _, epoch := s.Lookup(0, 0); epoch != 9 {
		t.Errorf("a container was placed with epoch %d, want 9", epoch)
	}
	if n, epoch := s.Lookup(0, 1); n != nil || epoch != 4 {
		t.Errorf("a new container is on %v with epoch %d, want no node and 4, the last epoch", n, epoch)
	}
}

// TestEpochsOfOneEntry applies transactions that an engine has put into one entry of its log: each one
// that places a container or replaces a process gives a new epoch.
func TestEpochsOfOneEntry(t *testing.T) {
	s := stateWith(t, []table.Change{table.Define{Plan: "p", Processors: []table.Processor{{Name: "a", Instances: 2}}}, table.Join{Node: table.Node{Name: "n1"}}})
	last := uint64(0)
	for i, change := range []table.Change{
		table.Assign{Processor: "a", First: 0, Count: 2, Node: "n1"},
		table.Join{Node: table.Node{Name: "n1", Boot: 7, Plan: "p"}},
		table.Join{Node: table.Node{Name: "n1", Boot: 8, Plan: "p"}},
		table.Assign{Processor: "a", First: 0, Count: 1, Node: "n1"},
	} {
		c := &table.Command{Kind: table.CommandTxn, Changes: []table.Change{change}}
		if out, _ := s.Apply(table.Revision{Index: 5, Position: uint32(i)}, 0, c); out.Err(c) != nil {
			t.Fatal(out.Err(c))
		}
		if _, epoch := s.Lookup(0, 0); epoch != uint64(5+i) || epoch <= last {
			t.Errorf("after transaction %d of entry 5, the epoch is %d", i, epoch)
		} else {
			last = epoch
		}
	}
	s, err := table.ReadState(s.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, epoch := s.Lookup(0, 1); epoch != 7 {
		t.Errorf("a restored container has epoch %d, want 7, that of the process", epoch)
	}
	applyTo(t, s, 9, table.Join{Node: table.Node{Name: "n1", Boot: 9, Plan: "p"}})
	for instance := range 2 {
		if _, epoch := s.Lookup(0, instance); epoch != 9 {
			t.Errorf("after entry 9, the epoch of instance %d is %d", instance, epoch)
		}
	}
}

// TestExpiryOfLeases tries to acquire a lease at different times after its last renewal.
func TestExpiryOfLeases(t *testing.T) {
	for _, c := range []struct {
		after time.Duration // since the renewal, with a ttl of 2 s and a margin of 1 s
		want  error
	}{{0, table.ErrHeld}, {2900 * time.Millisecond, table.ErrHeld}, {3 * time.Second, table.ErrHeld}, {3*time.Second + 1, nil}} {
		s := table.NewState()
		acquire := func(holder string) *table.Command {
			return &table.Command{Kind: table.CommandAcquire, Name: "x", Holder: holder, TTL: 2 * time.Second}
		}
		first, _ := s.Apply(table.Revision{Index: 1}, 0, acquire("n1"))
		renewed := int64(time.Second)
		s.Apply(table.Revision{Index: 2}, renewed, renewal("x", first.Number))
		next := acquire("n2")
		out, _ := s.Apply(table.Revision{Index: 3}, renewed+int64(c.after), next)
		if err := out.Err(next); !errors.Is(err, c.want) {
			t.Errorf("after %v the next holder got %v, want %v", c.after, err, c.want)
		}
	}
}

// TestRenewalOfAFormerHolder: a renewal that comes after another holder has got the lease does not renew it.
func TestRenewalOfAFormerHolder(t *testing.T) {
	s := table.NewState()
	apply := func(index uint64, at time.Duration, c *table.Command) (table.Outcome, error) {
		out, _ := s.Apply(table.Revision{Index: index}, int64(at), c)
		return out, out.Err(c)
	}
	acquire := func(holder string) *table.Command {
		return &table.Command{Kind: table.CommandAcquire, Name: "x", Holder: holder, TTL: 2 * time.Second}
	}
	former, _ := apply(1, 0, acquire("n1"))
	if _, err := apply(2, 4*time.Second, acquire("n2")); err != nil {
		t.Fatal(err)
	}
	_, _ = apply(3, 6*time.Second, renewal("x", former.Number))
	if _, err := apply(4, 8*time.Second, acquire("n3")); err != nil {
		t.Errorf("a renewal of the first holder has renewed the lease of the second one: %v", err)
	}
}

// TestAHolderGetsItsLeaseAgain: a holder that does not know that it has the lease, or has lost it by its own clock, gets a
// new token at once. The earlier one is lost.
func TestAHolderGetsItsLeaseAgain(t *testing.T) {
	s := table.NewState()
	index := uint64(0)
	apply := func(c *table.Command) (table.Outcome, error) {
		index++
		out, _ := s.Apply(table.Revision{Index: index}, 0, c)
		return out, out.Err(c)
	}
	acquire := func(holder string) *table.Command {
		return &table.Command{Kind: table.CommandAcquire, Name: "x", Holder: holder, TTL: time.Second}
	}
	first, err := apply(acquire("n1"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := apply(acquire("n1"))
	if err != nil || again.Number <= first.Number {
		t.Errorf("the holder got the token %d after %d, and the error %v", again.Number, first.Number, err)
	}
	if _, err := apply(&table.Command{Kind: table.CommandRelease, Name: "x", Token: first.Number}); !errors.Is(err, table.ErrLeaseLost) {
		t.Errorf("the release of the earlier lease got %v", err)
	}
	if _, err := apply(acquire("n2")); !errors.Is(err, table.ErrHeld) {
		t.Errorf("another holder got %v", err)
	}
}

// TestMerge merges two states of the same containers.
func TestMerge(t *testing.T) {
	assign := func(instance int, node string) table.Change {
		return table.Assign{Processor: "a", First: instance, Count: 1, Node: node}
	}
	with := func(more ...table.Change) *table.State {
		transactions := [][]table.Change{{table.Define{Plan: "p", Processors: []table.Processor{{Name: "a", Instances: 3}}}}}
		for _, name := range []string{"n1", "n2", "n3"} {
			transactions = append(transactions, []table.Change{table.Join{Node: table.Node{Name: name}}})
		}
		for _, change := range more {
			transactions = append(transactions, []table.Change{change})
		}
		return stateWith(t, transactions...)
	}
	s := with(assign(1, "n1"), assign(2, "n1"), assign(0, "n1"), assign(2, "n1"))
	other := with(assign(0, "n2"), assign(1, "n2"), assign(1, "n2"), assign(2, "n2"), table.Join{Node: table.Node{Name: "n4"}})
	s.Merge(other, table.Revision{Term: 2, Index: 50})
	want := []table.Run{{First: 0, Count: 1, Node: "n1", Epoch: 7}, {First: 1, Count: 1, Node: "n2", Epoch: 7}, {First: 2, Count: 1, Node: "n1", Epoch: 50}}
	v := s.Snapshot()
	if diff := cmp.Diff(want, v.Processors[0].Runs); diff != "" {
		t.Errorf("the merged places (-want +got): %s", diff)
	}
	if len(v.Nodes) != 3 || v.Revision != (table.Revision{Term: 2, Index: 50}) {
		t.Errorf("the merged state has the nodes %v and the revision %v", v.Nodes, v.Revision)
	}
	c := &table.Command{Kind: table.CommandTxn, Changes: []table.Change{table.Forget{Name: "n3"}}}
	if out, _ := s.Apply(table.Revision{Term: 2, Index: 51}, 0, c); out.Err(c) != nil {
		t.Error(out.Err(c))
	}
	c.Changes[0] = table.Forget{Name: "n2"}
	if out, _ := s.Apply(table.Revision{Term: 2, Index: 52}, 0, c); !errors.Is(out.Err(c), table.ErrInUse) {
		t.Errorf("a node that got a container by the merge was forgotten: %v", out.Err(c))
	}
}

// TestMergeKeepsProcesses: a node is expected in one state, and its process has joined in the
// other one. The merged state has the process, and the process does not end.
func TestMergeKeepsProcesses(t *testing.T) {
	define := table.Define{Plan: "p", Processors: []table.Processor{{Name: "a", Instances: 3}}}
	expected := table.Join{Node: table.Node{Name: "n1"}}
	joined := table.Join{Node: table.Node{Name: "n1", Boot: 7, Plan: "p"}}
	member := table.SetState{Name: "n1", Boot: 7, State: table.Member}
	s := stateWith(t, []table.Change{define, expected})
	s.Merge(stateWith(t, []table.Change{define, expected}, []table.Change{joined}, []table.Change{member}), table.Revision{Term: 2, Index: 50})
	if n := s.Snapshot().Nodes; len(n) != 1 || n[0].Boot != 7 || n[0].State != table.Member {
		t.Errorf("the merged state has the nodes %+v", n)
	}
	s.Merge(stateWith(t, []table.Change{define, expected}), table.Revision{Term: 3, Index: 60})
	if n := s.Snapshot().Nodes; len(n) != 1 || n[0].Boot != 7 {
		t.Errorf("after a merge with a state without the process, the nodes are %+v", n)
	}
	next := table.Join{Node: table.Node{Name: "n1", Boot: 8, Plan: "p"}}
	later := stateWith(t, []table.Change{define, expected}, []table.Change{joined}, []table.Change{member}, []table.Change{next})
	s.Merge(later, table.Revision{Term: 4, Index: 70})
	if n := s.Snapshot().Nodes; len(n) != 1 || n[0].Boot != 8 {
		t.Errorf("after a merge with a state that has the next process, the nodes are %+v", n)
	}
	s.Merge(stateWith(t, []table.Change{define, expected}, []table.Change{joined}, []table.Change{member}), table.Revision{Term: 5, Index: 80})
	if n := s.Snapshot().Nodes; len(n) != 1 || n[0].Boot != 8 {
		t.Errorf("after a merge with a state that has the former process, the nodes are %+v", n)
	}
}

func FuzzCommand(f *testing.F) {
	for _, c := range []*table.Command{
		{Kind: table.CommandTxn, Guards: []table.Guard{table.PlanIs{Plan: "p"}, table.EpochIs{Processor: "a", Epoch: 1}, table.BootIs{Name: "n"}, table.StateIs{Name: "n"}, table.LeaseIs{Name: "x", Token: 1}},
			Changes: []table.Change{table.Define{Plan: "p", Description: "processor a =", Processors: []table.Processor{{Name: "a", Instances: 3}}}, table.Join{Node: table.Node{Name: "n", Roles: []string{"r"}}}, table.SetState{Name: "n"}, table.Forget{Name: "n"}, table.Assign{Processor: "a", Count: 1, Node: "n"}}},
		{Kind: table.CommandAcquire, Name: "x", Holder: "n", TTL: time.Second},
		{Kind: table.CommandRelease, Name: "x", Token: 1},
		renewal("x", 1),
	} {
		b, err := table.AppendCommand(nil, c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var c *table.Command
		var err error
		allocated.Within(t, 100*len(b), func() { c, err = table.ReadCommand(b) })
		if err != nil {
			if !errors.Is(err, table.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		again, err := table.AppendCommand(nil, c)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x is decoded as %+v, which is encoded as %x (%v)", b, c, again, err)
		}
		out, _ := table.NewState().Apply(table.Revision{Index: 1}, 0, c)
		o, err := table.ReadOutcome(table.AppendOutcome(nil, &out))
		if err != nil || o != out {
			t.Fatalf("the outcome %+v is decoded as %+v (%v)", out, o, err)
		}
	})
}

// FuzzOutcome reads any bytes as the result of a command.
func FuzzOutcome(f *testing.F) {
	out, _ := table.NewState().Apply(table.Revision{Index: 1}, 0, &table.Command{Kind: table.CommandAcquire, Name: "x", Holder: "n"})
	f.Add(table.AppendOutcome(nil, &out))
	f.Fuzz(func(t *testing.T, b []byte) {
		allocated.Within(t, 20*len(b), func() {
			o, err := table.ReadOutcome(b)
			if err != nil {
				return
			}
			if again, err := table.ReadOutcome(table.AppendOutcome(nil, &o)); err != nil || again != o {
				t.Errorf("%+v is read as %+v: %v", o, again, err)
			}
		})
	})
}

func FuzzState(f *testing.F) {
	s := table.NewState()
	for i, changes := range [][]table.Change{
		{table.Define{Plan: "p", Description: "processor a =", Processors: []table.Processor{{Name: "a", Instances: 5}}}, table.Join{Node: table.Node{Name: "n1"}}},
		{table.Assign{Processor: "a", First: 1, Count: 2, Node: "n1"}},
	} {
		s.Apply(table.Revision{Index: uint64(i + 1)}, 0, &table.Command{Kind: table.CommandTxn, Changes: changes})
	}
	s.Apply(table.Revision{Index: 9}, 5, &table.Command{Kind: table.CommandAcquire, Name: "x", Holder: "n1", TTL: time.Second})
	f.Add(s.Append(nil))
	f.Add([]byte("\x01\x00\x01\x00\x01x\x00\x00\x01\x02\x00\x05\xffa\x01\t\x02\x02p"))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = table.Seal(b) // the fuzzer does not find checksums
		var s *table.State
		var err error
		// A run of two bytes describes any number of containers, with eight bytes each. So the limit does not follow from
		// the input alone: all processors together have at most ContainersMax.
		allocated.Within(t, 8*table.ContainersMax+200*len(b), func() { s, err = table.ReadState(b) })
		if err != nil {
			if !errors.Is(err, table.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		first := s.Append(nil)
		again, err := table.ReadState(first)
		if err != nil || !bytes.Equal(again.Append(nil), first) {
			t.Fatalf("the encoding of a decoded state cannot be decoded: %v", err)
		}
		c := &table.Command{Kind: table.CommandTxn, Changes: []table.Change{table.Join{Node: table.Node{Name: "new"}}}}
		again.Apply(table.Revision{Index: 1 << 40}, 0, c)
		for _, p := range again.Snapshot().Processors {
			if p.Instances > 0 {
				c.Changes = append(c.Changes[:0], table.Assign{Processor: p.Name, First: 0, Count: p.Instances, Node: "new"})
				again.Apply(table.Revision{Index: 1<<40 + 1}, 0, c)
			}
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	r := table.NewReplica()
	c := &table.Command{Kind: table.CommandTxn, Changes: []table.Change{
		table.Define{Plan: "p", Processors: []table.Processor{{Name: "a", Instances: 1024}}},
		table.Join{Node: table.Node{Name: "n1"}}, table.Assign{Processor: "a", First: 0, Count: 1024, Node: "n1"},
	}}
	r.Apply(table.Revision{Index: 1}, 0, c)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if n, _ := r.Lookup(0, i&1023); n == nil {
			b.Fatal("no node")
		}
	}
}
