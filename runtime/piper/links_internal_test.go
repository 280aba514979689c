package piper

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestLinksAreFound compares a table of links with a map.
func TestLinksAreFound(t *testing.T) {
	speed.Checks(t, 50, 500, 500)
	rapid.Check(t, func(t *rapid.T) {
		instances := rapid.IntRange(2, 2_000).Draw(t, "instances")
		start := rapid.IntRange(0, instances-1).Draw(t, "start")
		stride := rapid.IntRange(1, instances).Draw(t, "stride")
		count := rapid.IntRange(0, min(instances, 300)).Draw(t, "count")
		var links Links[*int]
		links.Make(instances)
		want := map[int]*int{}
		get := func(i int) *int {
			if t := links.table; len(t.slots) > 0 && t.slot(i).key != 0 {
				return t.slot(i).link
			}
			return nil
		}
		check := func() {
			slots, most := len(links.table.slots), max(slotsMin, 8*len(want))
			if slots > min(instances, most) || len(want) == 0 && slots > 0 {
				t.Fatalf("%d links to %d instances have %d slots", len(want), instances, slots)
			}
			for i := range instances {
				if get(i) != want[i] {
					t.Fatalf("instance %d has another link than the test has set", i)
				}
			}
		}
		for n := range count {
			if i := (start + n*stride) % instances; want[i] == nil {
				want[i] = new(int)
				links.Set(i, want[i])
			}
		}
		check()
		for _, i := range rapid.Permutation(slices.Sorted(maps.Keys(want))).Draw(t, "removed") {
			delete(want, i)
			links.table.remove(i)
			if rapid.IntRange(0, 20).Draw(t, "look") == 0 {
				check()
			}
		}
		check()
		for range rapid.IntRange(0, 100).Draw(t, "changes") { // few links, so the table is often small or full
			i := rapid.IntRange(0, min(instances, 12)-1).Draw(t, "changed")
			if want[i] != nil {
				delete(want, i)
				links.table.remove(i)
			} else {
				want[i] = new(int)
				links.Set(i, want[i])
			}
			if t := links.table; t.shift != 0 && t.used > 0 && t.used == len(t.slots) {
				panic("no slot is empty, so a search for another link does not end")
			}
		}
		check()
	})
}
