package raft_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/topogen/topogen/runtime/internal/race"
)

// seeds returns the range of seeds to run. The environment variable TOPOGEN_SEEDS overrides their
// number n; TOPOGEN_SEED selects a single seed. In CI the first seed is random, so that each run has
// other seeds.
func seeds(n uint64) (first, end uint64) {
	if s, err := strconv.ParseUint(os.Getenv("TOPOGEN_SEED"), 10, 64); err == nil {
		return s, s + 1
	}
	if s, err := strconv.ParseUint(os.Getenv("TOPOGEN_SEEDS"), 10, 64); err == nil {
		n = s
	}
	if os.Getenv("CI") != "" {
		first = rand.Uint64N(1 << 48)
	}
	return first, first + n
}

// TestRandomFaults runs groups with random faults: nodes crash and pause, messages and unsynced data
// are lost, and members and leaders change. At the end it compares the answers of the clients with
// the states of the nodes.
func TestRandomFaults(t *testing.T) {
	n := uint64(10)
	if os.Getenv("CI") != "" && !race.Enabled { // the race detector finds nothing here: the test has one goroutine
		n = 150
	}
	counts := map[string]int{}
	first, end := seeds(n)
	for seed := first; seed < end; seed++ {
		w, err := simulate(t, seed)
		if err != nil {
			t.Fatalf("seed %d: %v\nrepeat with: TOPOGEN_SEED=%d go test -run %s ./runtime/raft", seed, err, seed, t.Name())
		}
		for what, n := range w.counts {
			counts[what] += n
		}
	}
	t.Logf("%d seeds from %d on:%s", end-first, first, sortedCounts(counts))
}

// TestTheSameSeedGivesTheSameRun compares the traces of two runs with the same seed.
func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	for seed := range uint64(3) {
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
