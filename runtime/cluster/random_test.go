package cluster

import (
	"flag"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

const failuresShown = 3

// isFailFast reports whether the flag -failfast is set, as it is for a mutant.
func isFailFast() bool { return flag.Lookup("test.failfast").Value.String() == "true" }

// simInputs are what must occur in 100 seeds. Otherwise the simulation has lost a
// part of its input.
var simInputs = []string{
	"messages of other nodes", "messages to all nodes", "messages sent at most once", "large messages", "calls",
	"dropped", "nodes that wait for a place", "late starts", "pairs that moved", "nodes dead", "nodes left", "nodes that never return",
}

// TestRandomClusters runs random topologies on 1 to 7 nodes, with faults of the network
// and of nodes that end some time.
func TestRandomClusters(t *testing.T) {
	speed.NoRace(t)
	counts := map[string]int{}
	failed := 0
	first, end := speed.Seeds(t, 60, 500, 10_000)
	for seed := first; seed < end; seed++ {
		s := newSimulation(seed)
		s.run()
		if f := s.failure(); f != "" {
			if failed++; failed > 1 { // one in full, and the first lines of some others
				f, _, _ = strings.Cut(f, "\n")
			}
			t.Errorf("%s\n%s", f, speed.Repeat(t, seed))
			if failed == failuresShown || isFailFast() {
				break
			}
		}
		counts["steps"] += s.steps
		counts["calls"] += len(s.ledger.asks)
		for k, v := range s.counts {
			counts[k] += v
		}
	}
	for _, kind := range simInputs {
		if counts[kind] == 0 && end-first >= 100 && !t.Failed() {
			t.Errorf("%s: none in %d seeds", kind, end-first)
		}
	}
	t.Logf("%d seeds from %d on: %v", end-first, first, counts)
}

// TestTheSameSeedGivesTheSameRun compares the traces of two runs.
func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	for seed := range uint64(10) {
		a, b := newSimulation(seed), newSimulation(seed)
		a.run()
		b.run()
		if a.trace.hash != b.trace.hash || a.trace.count != b.trace.count {
			t.Errorf("seed %d: %d steps with hash %x, and %d steps with hash %x", seed, a.trace.count, a.trace.hash, b.trace.count, b.trace.hash)
		}
	}
}
