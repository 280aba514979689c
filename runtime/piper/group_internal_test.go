package piper

import (
	"slices"
	"testing"
)

// TestLinksAreReleasedInOrder: links that were held back because a cycle was full are ready in the order in which they were held
// back. Otherwise one of them would fill the cycle again and again, and the others would never send.
func TestLinksAreReleasedInOrder(t *testing.T) {
	u, links := new(Unit), []*Link{{}, {}, {}}
	for _, l := range links {
		l.nextReady, u.gated = u.gated, l
	}
	releaseGated(u)
	var got []int
	for u.ready.first != nil {
		got = append(got, slices.Index(links, u.ready.pop()))
	}
	if want := []int{0, 1, 2}; !slices.Equal(got, want) || u.gated != nil {
		t.Errorf("the links are ready in the order %v, want %v", got, want)
	}
}
