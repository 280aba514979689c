package graph

import "testing"

// TestThin checks that thin keeps the total weight of thousands of pulls, and almost their
// median.
func TestThin(t *testing.T) {
	const n = 20_000
	wants := make([][]pull, n)
	for i := range wants {
		wants[i] = []pull{{at: n - i, weight: 1 + i%3}}
	}
	for i, at := range monotone(wants) {
		if at < n*49/100 || at > n*51/100 {
			t.Fatalf("%d is at %d", i, at)
		}
	}
	many := make([]pull, 2*n)
	for i := range many {
		many[i] = pull{at: i, weight: 1}
	}
	few, weight := thin(many), 0
	for _, p := range few {
		weight += p.weight
	}
	if len(few) > pullsMax+1 || weight != 2*n || median(few) < n*99/100 || median(few) > n {
		t.Errorf("%d pulls of weight %d, the median %d", len(few), weight, median(few))
	}
}
