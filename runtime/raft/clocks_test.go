package raft_test

import (
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
)

// TestAClockThatIsWrong: one of the nodes has a clock that is a year ahead or behind. The node
// leads part of the time, and forwards updates otherwise. At all times entries get the time of
// the other nodes.
func TestAClockThatIsWrong(t *testing.T) {
	speed.NoRace(t)
	const year = 365 * 24 * time.Hour
	led := int64(0)
	runs := speed.Pick(t, 1, 12, 100)
	for seed := uint64(0); runs > 0; seed++ {
		if w := newWorld(t, seed); len(w.nodes) < simPeers+2 || w.counts["other first members"] > 0 {
			continue // a group of one node has no other clock, and with different first members no group is founded
		}
		runs--
		for _, skew := range []time.Duration{year, -year} {
			led += withWrongClock(t, seed, skew)
		}
	}
	if led == 0 {
		t.Error("the node with the wrong clock must lead in some of the runs")
	}
}

// withWrongClock runs a group in which one clock is wrong, without other faults. It returns for how
// many milliseconds the node with that clock led.
func withWrongClock(t *testing.T, seed uint64, skew time.Duration) (led int64) {
	t.Helper()
	t.Logf("seed %d, a difference of %v", seed, skew)
	w := newWorld(t, seed)
	w.noFaults, w.clientsActive = true, true
	wrong := w.nodes[w.rng.IntN(simPeers)]
	w.until("the first entries", func() bool { return w.newest > 20 })
	entries := 0
	var first uint64
	w.onUpdate = func(n *node, e fsm.Entry) {
		if first == 0 || e.Index < first || e.Index < w.newest {
			return // it was proposed long ago
		}
		entries++
		if by := time.Duration(e.Time - simTime(w.now)); by.Abs() > 2*time.Second {
			w.fail("entry %d must have the right time, got a difference of %v; the clock of %s differs by %v", e.Index, by, wrong.name, skew)
		}
	}
	for _, n := range w.nodes {
		n.crash("restart") // so that the state machines call onUpdate
	}
	w.until("a leader that all members know", w.led)
	wrong.skew = int64(skew)
	first = w.newest + 1
	for _, transfers := range []bool{false, true} {
		end := w.now + 2_000
		w.until("the end", func() bool {
			if wrong.raft != nil && wrong.core.Status().Role == "leader" {
				led++
			}
			for _, n := range w.nodes {
				if transfers && n.raft != nil && n != wrong && wrong.raft != nil && w.now%20 == 0 {
					w.transfer(n, wrong)
				}
			}
			return w.now > end
		})
	}
	if entries < 20 {
		t.Errorf("seed %d: the test must check at least 20 entries, got %d", seed, entries)
	}
	return led
}

// led reports whether all members run and know the leader.
func (w *world) led() bool {
	for _, n := range w.nodes {
		if n.member && (n.raft == nil || n.core.Status().Leader == "") {
			return false
		}
	}
	return true
}
