package raft_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
)

// TestAStateThatDiffers: one of three nodes applies updates differently from an entry on.
// It ends, also where it leads, and says between which checksums that entry lies; the
// others go on. Nodes are restarted and take snapshots in between.
func TestAStateThatDiffers(t *testing.T) {
	led := 0
	for seed := range uint64(30) {
		w := newWorld(t, seed)
		w.noFaults, w.clientsActive = true, true // no faults but what follows
		for _, n := range w.nodes {
			n.crash("restart")
		}
		if len(w.nodes) < simPeers+2 {
			continue // one node: nobody differs
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
			if n != wrong && wrong.raft != nil && wrong.core.Status().Role != "leader" { // which may pass its state on
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
			t.Fatalf("seed %d: %s is wrong from entry %d on, and ends with %v at %d; the newest entry is %d %v %v", seed, wrong.name, wrong.wrong, ended, w.now, w.newest, w.counts, w.failure)
		}
		if since, first := indexes(ended); since >= wrong.differs || first < wrong.differs {
			t.Errorf("seed %d: wrong from entry %d on, and it says %v", seed, wrong.differs, ended)
		}
		newest := w.newest
		wrong.member, wrong.restart = false, 0
		w.run(func() bool { return w.newest > newest+200 })
		if w.failure != nil {
			t.Errorf("seed %d: %v", seed, w.failure)
		}
	}
	if led == 0 {
		t.Error("no node was wrong while it led")
	}
}

// run runs the world until something is so, or too long.
func (w *world) run(until func() bool) {
	for end := w.now + 4*quietTime; w.now < end && w.failure == nil && !until(); {
		w.step()
	}
}

// indexes are those of the two checksums that an error names.
func indexes(err error) (since, first uint64) {
	number := func(pattern string) uint64 {
		found := regexp.MustCompile(pattern).FindStringSubmatch(fmt.Sprint(err))
		if found == nil {
			return 0
		}
		n, _ := strconv.ParseUint(found[1], 10, 64)
		return n
	}
	return number(`At entry (\d+) all`), number(`at entry (\d+) most`)
}
