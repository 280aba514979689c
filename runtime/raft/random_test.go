package raft_test

import (
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestRandomFaults runs groups with random faults: nodes crash and pause, messages and unsynced data
// are lost, and members and leaders change. At the end it compares the answers of the clients with
// the states of the nodes.
func TestRandomFaults(t *testing.T) {
	speed.NoRace(t)
	counts := map[string]int{}
	first, end := speed.Seeds(t, 3, 150, 10_000)
	for seed := first; seed < end; seed++ {
		w, err := simulate(t, seed)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, speed.Repeat(t, seed))
		}
		for what, n := range w.counts {
			counts[what] += n
		}
	}
	t.Logf("%d seeds from %d on:%s", end-first, first, sortedCounts(counts))
}

// TestTheSameSeedGivesTheSameRun compares the traces of two runs with the same seed.
func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	for seed := range speed.Pick(t, uint64(1), 3, 30) {
		a, err := simulate(t, seed)
		if err != nil {
			t.Fatal(err)
		}
		b, err := simulate(t, seed)
		if err != nil {
			t.Fatal(err)
		}
		if a.trace != b.trace {
			t.Errorf("seed %d: two runs must have the same trace", seed)
		}
	}
}
