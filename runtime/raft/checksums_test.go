package raft_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
)

// TestAStateThatDiffers: from some entry on, one of three nodes applies updates differently. The
// node stops, even if it leads. Its error names the checksums before and after this entry. The other
// nodes continue. Nodes restart and take snapshots during the test.
func TestAStateThatDiffers(t *testing.T) {
	speed.NoRace(t)
	led := 0
	for seed := range speed.Pick(t, uint64(5), 30, 300) {
		w := newWorld(t, seed)
		w.noFaults, w.clientsActive = true, true // the only fault is the wrong state
		for _, n := range w.nodes {
			n.crash("restart")
		}
		if len(w.nodes) < simPeers+2 {
			continue // a group of one node has nothing to compare
		}
		wrong := w.nodes[w.rng.IntN(simPeers)]
		w.run(func() bool { return w.newest > 40 })
		wrong.crash("restart")
		wrong.wrong = w.newest + 1
		w.run(func() bool { return w.isMember(wrong) && wrong.raft != nil })
		if w.rng.IntN(2) == 0 {
			w.run(func() bool {
				for _, n := range w.nodes {
					if n.raft != nil && n != wrong && wrong.raft != nil && w.now%20 == 0 {
						w.transfer(n, wrong)
					}
				}
				if wrong.raft != nil && wrong.core.Status().Role == "leader" {
					led++
					return true
				}
				return wrong.raft == nil
			})
		}
		for _, n := range w.nodes[:simPeers] {
			if n != wrong && wrong.raft != nil && wrong.core.Status().Role != "leader" { // a wrong leader may send its state in a snapshot
				n.crash("restart")
				break
			}
		}
		var ended error
		w.run(func() bool {
			if wrong.raft != nil {
				ended = nil
				return false
			}
			ended = wrong.ended
			return true
		})
		if !errors.Is(ended, fsm.ErrStateDiffers) {
			t.Fatalf("seed %d: %s is wrong from entry %d on and must stop with ErrStateDiffers, got %v at %d ms; the newest entry is %d %v %v", seed, wrong.name, wrong.wrong, ended, w.now, w.newest, w.counts, w.failure)
		}
		if since, first := indexes(ended); since >= wrong.differs || first < wrong.differs {
			t.Errorf("seed %d: the error must name checksums before and after entry %d, got %v", seed, wrong.differs, ended)
		}
		newest := w.newest
		wrong.member, wrong.restart = false, 0
		w.run(func() bool { return w.newest > newest+200 })
		if w.failure != nil {
			t.Errorf("seed %d: %v", seed, w.failure)
		}
	}
	if led == 0 {
		t.Error("the wrong node must lead in some of the runs")
	}
}

// run runs the world until a condition holds, with a time limit.
func (w *world) run(until func() bool) {
	for end := w.now + 4*quietTime; w.now < end && w.failure == nil && !until(); {
		w.step()
	}
}

// indexes returns the indexes of the two checksums in an error.
func indexes(err error) (since, first uint64) {
	number := func(pattern string) uint64 {
		found := regexp.MustCompile(pattern).FindStringSubmatch(fmt.Sprint(err))
		if found == nil {
			return 0
		}
		n, _ := strconv.ParseUint(found[1], 10, 64)
		return n
	}
	return number(`At entry (\d+) the states were equal`), number(`at entry (\d+) the majority`)
}
