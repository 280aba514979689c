package raft_test

import (
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// TestAClockThatIsWrong: one of the nodes has a clock that is a year ahead or behind. It
// leads part of the time, and passes updates on otherwise; all the time entries get the
// time of the others, and the node says that its clock is wrong.
func TestAClockThatIsWrong(t *testing.T) {
	const year = 365 * 24 * time.Hour
	runs, leads := 0, 0
	for seed := range uint64(12) {
		for _, skew := range []time.Duration{year, -year} {
			w := newWorld(t, seed)
			w.noFaults, w.clientsActive = true, true // no faults but what follows
			if len(w.nodes) < simPeers+2 {
				continue // one node: there is no other clock
			}
			wrong := w.nodes[w.rng.IntN(simPeers)]
			if w.run(func() bool { return w.newest > 20 }); w.newest <= 20 {
				continue // the nodes do not agree on who the first members are
			}
			entries := 0
			var first uint64
			w.onUpdate = func(n *node, e fsm.Entry) {
				if first == 0 || e.Index < first || e.Index < w.newest {
					return // it was proposed long ago
				}
				entries++
				if by := time.Duration(e.Time - simTime(w.now)); by.Abs() > 2*time.Second {
					w.fail("entry %d has a time that is %v off, and the clock of %s is by %v", e.Index, by, wrong.name, skew)
				}
			}
			for _, n := range w.nodes {
				n.crash("restart") // whose definitions tell of times then
			}
			w.run(func() bool { return w.led() })
			if !w.led() {
				continue // a group without one of the nodes: two clocks say nothing
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
				t.Errorf("seed %d: %d entries were looked at", seed, entries)
			}
		}
	}
	if runs < 12 || leads == 0 {
		t.Errorf("%d runs; a node with a wrong clock led in %d ms of them", runs, leads)
	}
}

// led reports whether there is a leader, and the nodes that run have heard of it.
func (w *world) led() bool {
	for _, n := range w.nodes {
		if n.member && (n.raft == nil || n.core.Status().Leader == "") {
			return false
		}
	}
	return true
}
