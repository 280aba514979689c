package raft_test

import (
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/internal/race"
)

// TestAClockThatIsWrong: one of the nodes has a clock that is a year ahead or behind. The node
// leads part of the time, and forwards updates otherwise. At all times entries get the time of
// the other nodes.
func TestAClockThatIsWrong(t *testing.T) {
	if race.Enabled {
		t.Skip("the simulation has one goroutine, so the race detector finds nothing")
	}
	const year = 365 * 24 * time.Hour
	runs, leads := 0, 0
	for seed := range uint64(12) {
		for _, skew := range []time.Duration{year, -year} {
			w := newWorld(t, seed)
			w.noFaults, w.clientsActive = true, true // the only fault is the wrong clock
			if len(w.nodes) < simPeers+2 {
				continue // a group of one node has no other clock
			}
			wrong := w.nodes[w.rng.IntN(simPeers)]
			if w.run(func() bool { return w.newest > 20 }); w.newest <= 20 {
				continue // the group was not founded: the nodes have different first members
			}
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
			w.run(func() bool { return w.led() })
			if !w.led() {
				continue // a node is missing: two clocks do not show which one is wrong
			}
			wrong.skew = int64(skew)
			runs++
			first = w.newest + 1
			for turn := range 2 {
				end := w.now + 2_000
				w.run(func() bool {
					if is := wrong.raft != nil && wrong.core.Status().Role == "leader"; is {
						leads++
					}
					for _, n := range w.nodes {
						if turn == 1 && n.raft != nil && n != wrong && wrong.raft != nil && w.now%20 == 0 {
							w.transfer(n, wrong)
						}
					}
					return w.now > end
				})
			}
			if w.failure != nil {
				t.Fatalf("seed %d: %v", seed, w.failure)
			}
			if entries < 20 {
				t.Errorf("seed %d: the test must check at least 20 entries, got %d", seed, entries)
			}
		}
	}
	if runs < 12 || leads == 0 {
		t.Errorf("the test must have 12 runs, and the node with the wrong clock must lead in some of them; got %d runs, and it led for %d ms", runs, leads)
	}
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
