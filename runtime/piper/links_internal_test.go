package piper

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestLinksAreFound compares a table of links with a map.
func TestLinksAreFound(t *testing.T) {
	speed.Checks(t, 50, 500, 500)
	rapid.Check(t, func(t *rapid.T) {
		instances := rapid.IntRange(2, 10_000).Draw(t, "instances")
		start := rapid.IntRange(0, instances-1).Draw(t, "start")
		stride := rapid.IntRange(1, instances).Draw(t, "stride")
		count := rapid.IntRange(0, min(instances, 3000)).Draw(t, "count")
		var links Links[*int]
		links.Make(instances)
		want := map[int]*int{}
		for n := range count {
			if i := (start + n*stride) % instances; want[i] == nil {
				want[i] = new(int)
				links.Set(i, want[i])
			}
		}
		slots := len(links.table.slots)
		if slots > instances || slots > max(slotsMin, 3*len(want)) {
			t.Fatalf("%d links to %d instances have %d slots", len(want), instances, slots)
		}
		for i := range instances {
			if s := links.table.slot(i); s.link != want[i] || (s.key != 0) != (want[i] != nil) {
				t.Fatalf("the link to instance %d is not the one that was set", i)
			}
		}
	})
}
