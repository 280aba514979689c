package piper

import (
	"testing"
	"time"
)

// TestSamplesAreFair checks that the weights of the timed turns of each instance add up
// to its number of turns, regardless of the other instances on the worker.
func TestSamplesAreFair(t *testing.T) {
	for _, shorts := range []int{1, 2, 61, 64, 122} {
		for _, longs := range []int{0, 1, 9} {
			s := &sampler{untilNext: 1, distance: 1}
			units := make([]Unit, shorts)
			weights := make([]int, shorts)
			long := &Unit{pace: pace{turnNanos: 1, longTurn: true}}
			const rounds = 20_000
			for range rounds {
				for i := range units {
					units[i].turnNanos = 1
					weights[i] += int(s.weight(&units[i]))
				}
				for range longs {
					if n := s.weight(long); n != 1 {
						t.Fatalf("a long turn has weight %d", n)
					}
				}
			}
			for i, n := range weights {
				if n < rounds*6/10 || n > rounds*14/10 {
					t.Fatalf("instance %d of %d with short turns, %d with long turns: %d turns are counted as %d", i, shorts, longs, rounds, n)
				}
			}
		}
	}
}

// TestABudgetOutsideThePoolIsNotLearnt checks that an instance outside the pool, which
// takes one message a turn, has its full budget when it comes back.
func TestABudgetOutsideThePoolIsNotLearnt(t *testing.T) {
	u := &Unit{}
	for range 64 {
		u.adaptBudget(time.Microsecond, &Worker{index: -1, batch: 1}, false)
	}
	if n := u.budgetOf(256); n != 256 {
		t.Errorf("the budget is %d messages a turn", n)
	}
}

// TestTurnsOfRemoteInstancesAreNotShortened checks that an instance of another node, whose turns
// take long because they send, still passes on a batch in each turn.
func TestTurnsOfRemoteInstancesAreNotShortened(t *testing.T) {
	u := &Unit{remote: true}
	for range 64 {
		u.adaptBudget(time.Second, &Worker{batch: 256}, u.remote)
	}
	if n := u.budgetOf(256); n != 256 {
		t.Errorf("the budget is %d messages a turn", n)
	}
}
