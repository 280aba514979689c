package backlog

import (
	"testing"

	"pgregory.net/rapid"
)

// TestList compares a list with what it is to do: whatever is told is in order, and from
// Since on nothing is missing.
func TestList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l List[uint64]
		var used []Item[uint64]
		index, told, waits := uint64(0), uint64(0), 0
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
				if item.Event <= told || !held[item.Event] {
					t.Fatalf("%d is told after %d", item.Event, told)
				}
				for i := max(told, item.Since) + 1; i < item.Event; i++ {
					t.Fatalf("%d is told after %d, since %d: %d is missing", item.Event, told, item.Since, i)
				}
				told = item.Event
				delete(held, told)
				waits--
			}
			if more != (len(held) > 0) || waits != len(held) {
				t.Fatalf("more is %v, and %d wait", more, len(held))
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

// TestLost: what did not fit is counted, once there is room again, and what comes next
// says from where on nothing is missing.
func TestLost(t *testing.T) {
	var l List[int]
	for i := range itemsMax + 10 {
		l.Put(uint64(i+1), 1, i)
	}
	if _, _, lost := l.Take(nil, itemsMax/2); lost != 0 {
		t.Errorf("%d are lost while it is full", lost)
	}
	l.Put(1_000_000, 1, 0) // it is not half empty
	_, _, lost := l.Take(nil, itemsMax/2)
	if lost != 11 {
		t.Errorf("%d are lost", lost)
	}
	l.Put(1_000_001, 1, 1)
	items, _, _ := l.Take(nil, 1)
	if items[0].Since != 1_000_000 {
		t.Errorf("since %d", items[0].Since)
	}
	l.Put(1_000_002, 1, 2)
	l.Lose(1_000_001)
	l.Put(1_000_003, 1, 3)
	items, _, _ = l.Take(nil, 2)
	if items[0].Since != 1_000_001 || items[1].Since != 1_000_001 {
		t.Errorf("since %d and %d", items[0].Since, items[1].Since)
	}
}

// TestLatest: a value is taken once, and the newest alone.
func TestLatest(t *testing.T) {
	var l Latest[string]
	take := func(want string, is bool) {
		t.Helper()
		if v, ok := l.Take(); ok != is || is && v != want {
			t.Errorf("%q, %v", v, ok)
		}
	}
	take("", false)
	for _, put := range []struct {
		value string
		first bool
	}{{"", false}, {"a", true}, {"b", false}, {"b", false}} {
		if first := l.Put(put.value); first != put.first {
			t.Errorf("%q is first: %v", put.value, first)
		}
	}
	take("b", true)
	take("", false)
	if l.Put("b") || !l.Put("a") {
		t.Error("what was taken is new, or what is new is not")
	}
	take("a", true)
}
