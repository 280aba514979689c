package backlog

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestList compares a list with a model: events come in order, and no event above Since
// is missing.
func TestList(t *testing.T) {
	speed.Checks(t, 30, 100, 10_000)
	rapid.Check(t, func(t *rapid.T) {
		var l List[uint64]
		var used []Item[uint64]
		index, last, waits := uint64(0), uint64(0), 0
		held := map[uint64]bool{}
		put := func(n, size int) {
			for range n {
				index++
				before := l.len()
				first := l.Put(index, size, index)
				if first != (before == 0) {
					t.Fatalf("first is %v, with %d before", first, before)
				}
				if l.len() > before {
					held[index] = true
					waits++
				}
			}
		}
		take := func(n int) {
			var more bool
			used, more, _ = l.Take(used, n)
			for _, item := range used {
				if item.Event <= last || !held[item.Event] {
					t.Fatalf("event %d comes after %d", item.Event, last)
				}
				for i := max(last, item.Since) + 1; i < item.Event; i++ {
					t.Fatalf("event %d comes after %d with Since %d: %d is missing", item.Event, last, item.Since, i)
				}
				last = item.Event
				delete(held, last)
				waits--
			}
			if more != (len(held) > 0) || waits != len(held) {
				t.Fatalf("more is %v, and the list holds %d events", more, len(held))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put one":  func(t *rapid.T) { put(1, rapid.IntRange(0, 1<<20).Draw(t, "size")) },
			"put many": func(t *rapid.T) { put(itemsMax/3, 16) },
			"put large": func(t *rapid.T) {
				put(3, bytesMax/2)
			},
			"take": func(t *rapid.T) { take(rapid.IntRange(1, itemsMax).Draw(t, "n")) },
			"begin": func(t *rapid.T) {
				index += 5
				l.Begin(index)
			},
			"": func(t *rapid.T) {
				if l.bytes > bytesMax+bytesMax/2 || l.len() > itemsMax {
					t.Fatalf("%d items, %d bytes", l.len(), l.bytes)
				}
			},
		})
	})
}

// TestLost checks that lost events are counted once there is room again, and that Since
// of the next event shows the gap.
func TestLost(t *testing.T) {
	var l List[int]
	for i := range itemsMax + 10 {
		l.Put(uint64(i+1), 1, i)
	}
	if _, _, lost := l.Take(nil, itemsMax/2); lost != 0 {
		t.Errorf("Take reports %d lost events while the list is full, want 0", lost)
	}
	l.Put(1_000_000, 1, 0) // lost: the list is still more than half full
	_, _, lost := l.Take(nil, itemsMax/2)
	if lost != 11 {
		t.Errorf("Take reports %d lost events, want 11", lost)
	}
	l.Put(1_000_001, 1, 1)
	items, _, _ := l.Take(nil, 1)
	if items[0].Since != 1_000_000 {
		t.Errorf("Since is %d, want 1000000", items[0].Since)
	}
	l.Put(1_000_002, 1, 2)
	l.Lose(1_000_001)
	l.Put(1_000_003, 1, 3)
	items, _, _ = l.Take(nil, 2)
	if items[0].Since != 1_000_001 || items[1].Since != 1_000_001 {
		t.Errorf("Since is %d and %d, want 1000001 twice", items[0].Since, items[1].Since)
	}
}

// TestLatest checks that a value is taken once, and only the newest value.
func TestLatest(t *testing.T) {
	var l Latest[string]
	take := func(want string, is bool) {
		t.Helper()
		if v, ok := l.Take(); ok != is || is && v != want {
			t.Errorf("Take returns %q, %v, want %q, %v", v, ok, want, is)
		}
	}
	take("", false)
	for _, put := range []struct {
		value string
		first bool
	}{{"", false}, {"a", true}, {"b", false}, {"b", false}} {
		if first := l.Put(put.value); first != put.first {
			t.Errorf("Put(%q) returns %v, want %v", put.value, first, put.first)
		}
	}
	take("b", true)
	take("", false)
	if l.Put("b") || !l.Put("a") {
		t.Error("Put must return false for the value that was taken last and true for a new value")
	}
	take("a", true)
}
