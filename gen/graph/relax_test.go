package graph

import "testing"

// TestThin: of thousands that want to be in one place their number is kept, and
// nearly where they want to be.
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
	var many []pull
	for i := range pullsMax + 1 {
		many = append(many, pull{at: i, weight: i})
	}
	few := thin(many)
	weight := 0
	for _, p := range few {
		weight += p.weight
	}
	if len(few) != pullsMax/2+1 || weight != pullsMax*(pullsMax+1)/2 {
		t.Errorf("%d pulls of weight %d", len(few), weight)
	}
}
