package table_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// ended is a table with the nodes n1 and n2, whose processes are 1 and 2.
type ended struct {
	t *testing.T
	*table.State
	index uint64
}

func newEnded(t *testing.T) *ended {
	e := &ended{t: t, State: table.NewState()}
	e.apply(table.Define{Plan: "p", Processors: []table.Processor{{Name: "a", Instances: 1}}})
	e.join("n1", 1)
	e.join("n2", 2)
	return e
}

func (e *ended) apply(changes ...table.Change) {
	e.t.Helper()
	e.index++
	c := &table.Command{Kind: table.CommandTxn, Changes: changes}
	if out, _ := e.Apply(table.Revision{Term: 1, Index: e.index}, 0, c); out.Err(c) != nil {
		e.t.Fatal(out.Err(c))
	}
}

func (e *ended) join(name string, boot table.Boot) {
	e.t.Helper()
	e.apply(table.Join{Node: table.Node{Name: name, Boot: boot, Plan: "p"}})
}

func (e *ended) agree(group int, phase byte) {
	e.t.Helper()
	e.apply(table.Agree{Groups: []table.GroupPhase{{Group: group, Phase: phase}}})
}

func (e *ended) want(phases []byte, processes map[string]table.Boot) {
	e.t.Helper()
	if diff := cmp.Diff(&table.End{Phases: phases, Processes: processes}, e.Snapshot().End); diff != "" {
		e.t.Error(diff)
	}
}

// TestPhasesOfARun lists what transactions change in the phases of groups.
func TestPhasesOfARun(t *testing.T) {
	e := newEnded(t)
	e.agree(1, 3)
	e.agree(1, 1) // a repeated transaction
	e.agree(0, 1)
	both := map[string]table.Boot{"n1": 1, "n2": 2}
	e.want([]byte{1, 3}, both)
	e.join("n1", 11)
	e.want([]byte{1, 3}, both) // they do not hold for the new process yet
	e.apply(table.Agree{})
	e.want([]byte{1, 3}, map[string]table.Boot{"n1": 11, "n2": 2})
	e.join("n1", 12)
	e.join("n2", 22)
	e.want([]byte{1, 3}, map[string]table.Boot{"n1": 11, "n2": 2}) // a process that was killed reads them
	e.agree(2, 1)
	e.want([]byte{0, 0, 1}, map[string]table.Boot{"n1": 12, "n2": 22}) // the next run
	e.apply(table.Define{Plan: "q", Processors: []table.Processor{{Name: "a", Instances: 1}}})
	if end := e.Snapshot().End; end != nil {
		t.Errorf("another plan has the phases %+v", end)
	}
}

// TestMergedPhases merges two states of one run, and those of two runs.
func TestMergedPhases(t *testing.T) {
	a, b := newEnded(t), newEnded(t)
	a.agree(0, 3)
	a.agree(1, 1)
	b.agree(1, 3)
	a.Merge(b.State, table.Revision{Term: 2, Index: 9})
	a.want([]byte{3, 3}, map[string]table.Boot{"n1": 1, "n2": 2})

	a, b = newEnded(t), newEnded(t)
	b.agree(0, 3)
	for _, s := range []*ended{a, b} {
		s.join("n1", 11)
		s.join("n2", 22)
	}
	a.agree(1, 1)
	a.Merge(b.State, table.Revision{Term: 2, Index: 9})
	a.want([]byte{0, 1}, map[string]table.Boot{"n1": 11, "n2": 22})
	b.Merge(a.State, table.Revision{Term: 2, Index: 9})
	b.want([]byte{0, 1}, map[string]table.Boot{"n1": 11, "n2": 22})
}
