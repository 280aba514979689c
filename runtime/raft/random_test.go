package raft_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/topogen/topogen/runtime/internal/race"
)

// seeds are those to run: as many as the environment variable TOPOGEN_SEEDS asks for, or
// that of TOPOGEN_SEED alone. In CI they begin anywhere, so that each run sees others.
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

// TestRandomFaults runs groups whose nodes crash, pause, lose messages and disks'
// unsynced bytes, change members and leaders, and holds what clients saw against
// what there is in the end.
func TestRandomFaults(t *testing.T) {
	n := uint64(10)
	if os.Getenv("CI") != "" && !race.Enabled { // one goroutine, which races with nobody
		n = 300
	}
	counts := map[string]int{}
	first, end := seeds(n)
	for seed := first; seed < end; seed++ {
		w, err := simulate(t, seed)
		if err != nil {
			t.Fatalf("seed %d: %v\nagain: TOPOGEN_SEED=%d go test -run %s ./runtime/raft", seed, err, seed, t.Name())
		}
		for what, n := range w.counts {
			counts[what] += n
		}
	}
	t.Logf("%d seeds from %d on:%s", end-first, first, sortedCounts(counts))
}

// TestTheSameSeedGivesTheSameRun compares traces.
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
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}
