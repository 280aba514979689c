package fsm_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
	"pgregory.net/rapid"
)

type machine = fsm.Machine[tape, note, answer]

// TestMachineIsAList compares a Machine with a list of all updates that it ever had,
// through commits, reverts, failures, panics and restarts.
func TestMachineIsAList(t *testing.T) {
	speed.Checks(t, 40, 100, 10_000)
	rapid.Check(t, func(t *rapid.T) {
		x := &listed{m: fsm.NewMachine(noteDefinition), trouble: new(trouble)}
		x.m.State().trouble = x.trouble
		t.Repeat(map[string]func(*rapid.T){
			"add":     x.add,
			"apply":   x.apply,
			"commit":  x.commit,
			"revert":  x.revert,
			"cleanup": x.cleanup,
			"restart": x.restart,
			"":        x.check,
		})
	})
}

// listed is a Machine and its model, a list.
type listed struct {
	m                  *machine
	trouble            *trouble
	updates            []note // all updates since the start
	applied, committed int
	next               int64
}

func (x *listed) add(t *rapid.T) {
	for range rapid.IntRange(0, 3).Draw(t, "updates") {
		x.next++
		n := note{value: x.next}
		x.updates = append(x.updates, n)
		x.m.Add(n)
	}
}

func (x *listed) apply(t *rapid.T) {
	budget := rapid.IntRange(0, 4).Draw(t, "budget")
	x.trouble.left = rapid.IntRange(0, 1).Draw(t, "trouble")
	fails := x.trouble.left > 0 && budget > 0 && x.applied < len(x.updates)
	n, err := x.m.Apply(budget)
	want := min(budget, len(x.updates)-x.applied)
	if fails {
		want = 0
	}
	if n != want || errors.Is(err, errFailed) != fails {
		t.Fatalf("applied %d (%v), want %d, failure %t", n, err, want, fails)
	}
	x.applied += n
	x.trouble.left = 0
	x.isClean(t)
}

func (x *listed) commit(*rapid.T) {
	x.m.Commit()
	x.committed = len(x.updates)
}

// revert undoes the updates that are not committed, newest first. In trouble the first
// one to undo panics, and the updates after it that were not applied are gone.
func (x *listed) revert(t *rapid.T) {
	x.trouble.left = rapid.IntRange(0, 1).Draw(t, "trouble")
	fails := x.trouble.left > 0 && x.applied > x.committed
	err := x.m.Revert()
	if errors.Is(err, fsm.ErrPanicked) != fails || (err != nil) != fails {
		t.Fatalf("revert: %v, want failure %t", err, fails)
	}
	x.trouble.left = 0
	if fails {
		x.updates = x.updates[:x.applied]
		return
	}
	x.updates = x.updates[:x.committed]
	x.applied = min(x.applied, x.committed)
}

func (x *listed) cleanup(t *rapid.T) {
	x.m.Cleanup()
	x.isClean(t)
}

// restart continues with another Machine, restored from a snapshot.
func (x *listed) restart(t *rapid.T) {
	b, err := x.m.AppendSnapshot([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	x.m = fsm.NewMachine(noteDefinition)
	if err := x.m.Restore(b[len("before"):]); err != nil {
		t.Fatal(err)
	}
	x.m.State().trouble = x.trouble
}

func (x *listed) isClean(t *rapid.T) {
	if cleaned, applied, committed, _ := x.m.Borders(); cleaned != min(applied, committed) {
		t.Fatalf("cleaned up to %d, with borders %d and %d", cleaned, applied, committed)
	}
}

func (x *listed) check(t *rapid.T) {
	cleaned, applied, committed, end := x.m.Borders()
	if cleaned > min(applied, committed) || max(applied, committed) > end {
		t.Fatalf("borders %d, %d, %d, %d", cleaned, applied, committed, end)
	}
	got := []int{int(applied), int(committed), int(end)}
	if want := []int{x.applied, x.committed, len(x.updates)}; !slices.Equal(got, want) {
		t.Fatalf("applied, committed, end: %v, want %v", got, want)
	}
	var state []int64
	for _, n := range x.updates[:x.applied] {
		state = append(state, n.value)
	}
	if got := x.m.State().values; !slices.Equal(got, state) {
		t.Fatalf("state %v, want %v", got, state)
	}
	if got := x.m.Upcoming(); !slices.Equal(got, x.updates[x.committed:]) {
		t.Fatalf("upcoming %v, want %v", got, x.updates[x.committed:])
	}
}

// TestUpcomingAreCopies: the caller may change the returned updates, and also what they
// point to if the update has a method Clone.
func TestUpcomingAreCopies(t *testing.T) {
	m := fsm.NewMachine(fsm.Definition[map[string]int, words, struct{}]{Update: fsm.NoResult((*words).Update)})
	m.Add(words{"a", "b"}, words{"c"})
	got := m.Upcoming()
	got[0][0], got[1] = "x", nil
	if diff := cmp.Diff([]words{{"a", "b"}, {"c"}}, m.Upcoming()); diff != "" {
		t.Error(diff)
	}
}

type words []string

func (w *words) Update(*map[string]int) error { return nil }
func (w *words) Clone() words                 { return slices.Clone(*w) }

// TestRevertKeepsWhatIsCommitted: Revert undoes no committed update, also if it is
// applied and not cleaned up.
func TestRevertKeepsWhatIsCommitted(t *testing.T) {
	m := fsm.NewMachine(noteDefinition)
	m.Add(note{value: 1}, note{value: 2})
	m.Commit()
	if _, err := m.Apply(1); err != nil {
		t.Fatal(err)
	}
	m.Add(note{value: 3})
	if err := m.Revert(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Apply(9); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1, 2}, m.State().values); diff != "" {
		t.Error(diff)
	}
}
