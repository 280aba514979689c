package placement

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// best tries all placements.
func (p *Measured) best() int64 {
	at := make([]int, len(p.At))
	least := p.Load(at)
	for {
		i := 0
		for ; i < len(at); i++ {
			if at[i]++; at[i] < p.Workers {
				break
			}
			at[i] = 0
		}
		if i == len(at) {
			return least
		}
		least = min(least, p.Load(at))
	}
}

// exchange adds turns between two instances.
func (p *Measured) exchange(a, b int, turns int64) {
	p.Traffic[a] = append(p.Traffic[a], Traffic{b, turns})
	p.Traffic[b] = append(p.Traffic[b], Traffic{a, turns})
}

// drawPlacement draws measurements.
func drawPlacement(t *rapid.T, most int) *Measured {
	n := rapid.IntRange(1, most).Draw(t, "instances")
	p := &Measured{
		Ended:   func() bool { return false },
		Workers: rapid.IntRange(1, 3).Draw(t, "workers"),
		Cost:    make([]int64, n), Traffic: make([][]Traffic, n), At: make([]int, n),
	}
	for i := range n {
		p.Cost[i] = rapid.Int64Range(0, 1_000_000).Draw(t, "cost")
		p.At[i] = rapid.IntRange(0, p.Workers-1).Draw(t, "at")
	}
	for range rapid.IntRange(0, n).Draw(t, "pairs") {
		a, b := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b")
		if a != b {
			p.exchange(a, b, rapid.Int64Range(0, 1000).Draw(t, "turns"))
		}
	}
	return p
}

// TestAPlacementIsNearlyTheBest compares the plan with all placements of a few
// instances.
func TestAPlacementIsNearlyTheBest(t *testing.T) {
	const cases = 2000
	worse, worst := 0, 1.0
	for seed := range cases {
		p := rapid.Custom(func(t *rapid.T) *Measured { return drawPlacement(t, 7) }).Example(seed)
		to, _ := p.Plan()
		if share := float64(p.best()) / float64(max(1, p.Load(to))); share < 0.85 && p.Load(to) > 0 {
			worse++
			worst = min(worst, share)
		}
	}
	t.Logf("%d of %d are below 0.85 of the best, the worst at %.2f", worse, cases, worst)
	if worse > cases/100 || worst < 0.6 {
		t.Errorf("%d of %d are below 0.85 of the best, the worst at %.2f", worse, cases, worst)
	}
}

// TestAPlacementIsWhole checks that each instance has a worker, that instances without
// a place keep none, and that a placement that pays has a lower load.
func TestAPlacementIsWhole(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlacement(t, 40)
		for i := range p.At {
			if rapid.IntRange(0, 9).Draw(t, "out") == 0 {
				p.At[i] = -1
			}
		}
		before := slices.Clone(p.At)
		to, pays := p.Plan()
		if !slices.Equal(p.At, before) {
			t.Fatal("plan has changed the current placement")
		}
		for i, w := range to {
			if w >= p.Workers || (w < 0) != (p.At[i] < 0) {
				t.Fatalf("instance %d moves from worker %d to %d of %d", i, p.At[i], w, p.Workers)
			}
			if pays && w != p.At[i] && !p.active(i) {
				t.Fatalf("instance %d moves although it does nothing", i)
			}
		}
		if pays && p.Load(to) >= p.Load(p.At) {
			t.Fatalf("plan says that a change of the load from %d to %d pays", p.Load(p.At), p.Load(to))
		}
	})
}

// TestAPlacementStays checks that no instance moves again after a plan was carried out
// and nothing has changed.
func TestAPlacementStays(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlacement(t, 40)
		for round := range 3 {
			to, pays := p.Plan()
			if pays && round == 2 {
				t.Fatalf("the third plan still moves instances, from %v to %v", p.At, to)
			}
			if pays {
				p.At = to
			}
		}
	})
}

// TestOneTooHeavyInstanceIsAlone checks that an instance that costs more than a share
// gets a worker of its own.
func TestOneTooHeavyInstanceIsAlone(t *testing.T) {
	p := &Measured{
		Ended:   func() bool { return false },
		Workers: 3, Cost: []int64{1_000_000, 100_000, 100_000, 100_000, 100_000}, Traffic: make([][]Traffic, 5), At: make([]int, 5),
	}
	to, pays := p.Plan()
	if !pays {
		t.Fatal("nobody moves")
	}
	for i := 1; i < len(to); i++ {
		if to[i] == to[0] {
			t.Errorf("instance %d shares a worker with the instance that costs more than a share: %v", i, to)
		}
	}
}

// TestGreedyGivesTheHeavyAWorkerOfTheirOwn checks that an instance that costs more than
// a share is alone, however many messages it exchanges with others. If there is no such
// instance, no worker may be empty while there are enough instances.
func TestGreedyGivesTheHeavyAWorkerOfTheirOwn(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlacement(t, 12)
		share := int64(0)
		for i := range p.Cost { // few different costs, so that the low ones leave gaps
			p.Cost[i] = rapid.Int64Range(1, 6).Draw(t, "coarse")
			share += p.Cost[i]
		}
		share /= int64(p.Workers)
		at := p.greedy()
		for i, cost := range p.Cost {
			for j, w := range at {
				if cost > share && j != i && w == at[i] {
					t.Fatalf("instance %d costs %d, more than a share of %d, and shares its worker with instance %d: %v of %v", i, cost, share, j, at, p.Cost)
				}
			}
		}
		for w := range p.Workers {
			if n := slices.Index(at, w); n < 0 && len(p.At) >= p.Workers && slices.Max(p.Cost) <= share {
				t.Fatalf("worker %d has no instance: %v of %v", w, at, p.Cost)
			}
		}
	})
}

func TestThoseThatTalkStayTogether(t *testing.T) {
	p := &Measured{Ended: func() bool { return false }, Workers: 2, Cost: slices.Repeat([]int64{100_000}, 6), Traffic: make([][]Traffic, 6), At: []int{0, 0, 0, 0, 1, 1}}
	for i := 0; i < 6; i += 2 {
		p.exchange(i, i+1, 10_000)
	}
	p.At = []int{0, 1, 0, 1, 0, 1}
	to, pays := p.Plan()
	if !pays {
		t.Fatal("nobody moves")
	}
	for i := 0; i < 6; i += 2 {
		if to[i] != to[i+1] {
			t.Errorf("instances %d and %d exchange many messages and are on different Workers: %v", i, i+1, to)
		}
	}
}
