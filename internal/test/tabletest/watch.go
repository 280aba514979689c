package tabletest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// folder rebuilds a table from events.
type folder struct {
	plan       table.Plan
	nodes      map[string]table.Node
	processors []table.Processor
	places     map[string][]place
	leases     map[string]table.LeaseState
	revision   table.Revision
	events     int
	snapshots  int
}

type place struct {
	node  string
	epoch uint64
}

// add adds an event. It returns an error if the event does not follow the previous one.
func (f *folder) add(e *table.Event) error {
	if e.Snapshot != nil {
		f.snapshots++
		f.restore(e.Snapshot)
		return nil
	}
	f.events++
	if e.Revision.Compare(f.revision) <= 0 || e.Term < f.revision.Term {
		return fmt.Errorf("event %v follows event %v", e.Revision, f.revision)
	}
	f.revision = e.Revision
	if e.Define != nil {
		f.define(e.Define)
	}
	for _, n := range e.Nodes {
		f.nodes[n.Name] = n
		if n.State == table.Forgotten {
			delete(f.nodes, n.Name)
		}
	}
	for _, l := range e.Leases {
		f.leases[l.Name] = l
		if l.Holder == "" {
			delete(f.leases, l.Name)
		}
	}
	for name, list := range f.places { // a new process of a node runs its instances
		for i := range list {
			f.places[name][i].epoch = max(list[i].epoch, f.nodes[list[i].node].Epoch)
		}
	}
	for _, m := range e.Moves {
		for i := m.First; i < m.First+m.Count; i++ {
			p := &f.places[m.Processor][i]
			if p.node != m.From || p.epoch >= m.Epoch {
				return fmt.Errorf("event %v moves %s/%d from %q with epoch %d, but it is on %q with epoch %d", e.Revision, m.Processor, i, m.From, m.Epoch, p.node, p.epoch)
			}
			*p = place{m.To, m.Epoch}
		}
	}
	return nil
}

func (f *folder) define(d *table.Define) {
	f.plan, f.processors = table.Plan{Hash: d.Plan, Description: d.Description}, d.Processors
	old := f.places
	f.places = map[string][]place{}
	for _, p := range d.Processors {
		f.places[p.Name] = make([]place, p.Instances)
		copy(f.places[p.Name], old[p.Name])
	}
}

func (f *folder) restore(v *table.Snapshot) {
	f.plan, f.revision, f.processors = table.Plan{Hash: v.Plan, Description: v.Description}, v.Revision, nil
	f.nodes, f.places, f.leases = map[string]table.Node{}, map[string][]place{}, map[string]table.LeaseState{}
	for _, n := range v.Nodes {
		f.nodes[n.Name] = n
	}
	for _, p := range v.Processors {
		f.processors = append(f.processors, p.Processor)
		places := make([]place, 0, p.Instances)
		for _, r := range p.Runs {
			for range r.Count {
				places = append(places, place{r.Node, r.Epoch})
			}
		}
		f.places[p.Name] = places
	}
	for _, l := range v.Leases {
		f.leases[l.Name] = l
	}
}

// snapshot returns the rebuilt table.
func (f *folder) snapshot() *table.Snapshot {
	v := &table.Snapshot{Revision: f.revision, Plan: f.plan.Hash, Description: f.plan.Description}
	for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
		v.Nodes = append(v.Nodes, f.nodes[name])
	}
	for _, p := range f.processors {
		places := table.Places{Processor: p}
		for i, c := range f.places[p.Name] {
			if n := len(places.Runs) - 1; n >= 0 && places.Runs[n].Node == c.node && places.Runs[n].Epoch == c.epoch {
				places.Runs[n].Count++
			} else {
				places.Runs = append(places.Runs, table.Run{First: i, Count: 1, Node: c.node, Epoch: c.epoch})
			}
		}
		v.Processors = append(v.Processors, places)
	}
	return v
}

// until reads events until the folder has a revision.
func (f *folder) until(ctx context.Context, t *testing.T, w *table.Watcher, revision table.Revision) {
	t.Helper()
	for f.revision.Compare(revision) < 0 {
		e, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("Next after %v: %v", f.revision, err)
		}
		if err := f.add(e); err != nil {
			t.Fatal(err)
		}
	}
}

// nodesApplyTheSameChanges watches all nodes while several of them propose transactions.
func nodesApplyTheSameChanges(t *testing.T, s *suite) {
	s.bootstrap()
	folders, watchers := map[string]*folder{}, map[string]*table.Watcher{}
	for _, name := range firstNames {
		s.sync(s.node(name))
		folders[name], watchers[name] = new(folder), s.node(name).Replica().Watch(table.Revision{})
	}
	done := make(chan error, len(firstNames))
	for i, name := range firstNames {
		node := s.node(name)
		go func() {
			var err error
			for k := 0; k < 40 && err == nil; k++ {
				target := firstNames[(i+k)%len(firstNames)]
				_, err = node.Txn(s.ctx, nil, []table.Change{table.Assign{Processor: "counter", First: (7*k + i) % 60, Count: 1 + k%4, Node: target}})
			}
			done <- err
		}()
	}
	for range firstNames {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	last := s.txn(s.node("n2"), nil, table.Assign{Processor: "counter", First: 0, Count: 1, Node: "n3"})
	want := s.same()
	for name, f := range folders {
		f.until(s.ctx, t, watchers[name], last)
		if got := describe(f.snapshot()); got != want {
			t.Errorf("the events of %s make another table:\n%s\nwant\n%s", name, got, want)
		}
		if f.snapshots != 1 || f.events != folders["n1"].events {
			t.Errorf("the watcher of %s got %d snapshots and %d events, the watcher of n1 %d events", name, f.snapshots, f.events, folders["n1"].events)
		}
	}
}

// watcherContinues reads from a known revision on, without a snapshot.
func watcherContinues(t *testing.T, s *suite) {
	s.bootstrap()
	n1 := s.node("n1")
	from := s.txn(n1, nil, table.Assign{Processor: "counter", First: 5, Count: 1, Node: "n2"})
	s.txn(n1, nil, table.Assign{Processor: "counter", First: 5, Count: 2, Node: "n3"})
	last := s.txn(n1, nil, table.Assign{Processor: "counter", First: 5, Count: 1, Node: "n1"})
	w := n1.Replica().Watch(from)
	for _, want := range []string{"n3", "n1"} {
		e, err := w.Next(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if e.Snapshot != nil || len(e.Moves) == 0 || e.Moves[0].To != want {
			t.Fatalf("got the event %+v, want a move to %s", e, want)
		}
		if want == "n1" && e.Revision != last {
			t.Fatalf("the last event has revision %v, but Txn returned %v", e.Revision, last)
		}
	}
}

// slowWatcherGetsSnapshot lets a watcher fall behind by more events than a replica keeps.
func slowWatcherGetsSnapshot(t *testing.T, s *suite) {
	s.bootstrap()
	n1 := s.node("n1")
	f, w := new(folder), n1.Replica().Watch(table.Revision{})
	f.until(s.ctx, t, w, n1.Replica().Revision())
	many := make([]table.Change, 0, 64)
	for i := 0; i < 64; i += 2 { // every second container, so that each one is a move of its own
		many = append(many, table.Assign{Processor: "counter", First: i, Count: 1, Node: "n2"})
	}
	var last table.Revision
	for range 600 { // 19,200 moves
		last = s.txn(n1, nil, many...)
	}
	f.until(s.ctx, t, w, last)
	if f.snapshots != 2 {
		t.Errorf("the slow watcher got %d snapshots, want 2: the first one, and the one for the changes that it missed", f.snapshots)
	}
	if got, want := describe(f.snapshot()), describe(n1.Replica().Snapshot()); got != want {
		t.Errorf("the events make another table:\n%s\nwant\n%s", got, want)
	}
	last = s.txn(n1, nil, table.Assign{Processor: "counter", First: 0, Count: 1, Node: "n3"})
	f.until(s.ctx, t, w, last)
	if f.snapshots != 2 {
		t.Error("the watcher got a snapshot although it had caught up")
	}
}
