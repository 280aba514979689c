package rankedmap

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestModel compares a map with a sorted slice, for keys and values of several types,
// with few different values, so that equal ones are frequent.
func TestModel(t *testing.T) {
	floats := rapid.SampledFrom([]float64{math.NaN(), math.Inf(-1), -1, math.Copysign(0, -1), 0, 1, math.Inf(1)})
	words := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 0, 3, -1)
	t.Run("int, int", func(t *testing.T) { compareWithModel(t, rapid.IntRange(0, 50), rapid.IntRange(0, 10)) })
	t.Run("string, int64", func(t *testing.T) { compareWithModel(t, words, rapid.Int64()) })
	t.Run("uint8, string", func(t *testing.T) { compareWithModel(t, rapid.Uint8(), words) })
	t.Run("float64, float64", func(t *testing.T) { compareWithModel(t, floats, floats) })
}

func compareWithModel[K, V cmp.Ordered](t *testing.T, keys *rapid.Generator[K], values *rapid.Generator[V]) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		var w checkedMap[K, V]
		t.Repeat(map[string]func(*rapid.T){
			"update": func(t *rapid.T) { w.update(keys.Draw(t, "key"), values.Draw(t, "value")) },
			"again": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				if value, ok := w.real.Get(key); ok {
					w.update(key, value)
				}
			},
			"erase": func(t *rapid.T) { w.erase(t, keys.Draw(t, "key")) },
			"get": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				if _, ok := w.real.Get(key); ok != (w.model.of(key) >= 0) {
					t.Fatalf("Get(%v): %v", key, ok)
				}
			},
			"erase lowest": func(t *rapid.T) {
				if key, _, ok := w.real.Lowest(); ok {
					w.erase(t, key)
				}
			},
			"": w.check,
		})
	})
}

// TestLoopMayChangeTheMap: each step yields the lowest pair above the last one, whatever
// the loop has changed.
func TestLoopMayChangeTheMap(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	keys, values := rapid.IntRange(0, 30), rapid.IntRange(0, 30)
	rapid.Check(t, func(t *rapid.T) {
		var w checkedMap[int, int]
		for key, value := range rapid.MapOf(keys, values).Draw(t, "pairs") {
			w.update(key, value)
		}
		want, more := pair[int, int]{}, len(w.model) > 0
		if more {
			want = w.model[0]
		}
		steps := rapid.IntRange(0, 60).Draw(t, "steps")
		for key, value := range w.real.All() {
			got := pair[int, int]{key, value}
			if !more || got != want {
				t.Fatalf("got %v, want %v (%v)", got, want, more)
			}
			if steps--; steps < 0 {
				return
			}
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				switch rapid.IntRange(0, 2).Draw(t, "change") {
				case 0:
					w.update(keys.Draw(t, "key"), values.Draw(t, "value"))
				case 1:
					w.erase(t, keys.Draw(t, "key"))
				case 2:
					w.erase(t, key)
				}
			}
			want, more = w.model.after(got)
		}
		if more {
			t.Fatalf("%v is not yielded", want)
		}
		w.check(t)
	})
}

// TestUnchangedValueChangesNothing: an Update with an equal value must not remove the
// pair.
func TestUnchangedValueChangesNothing(t *testing.T) {
	var m Map[string, float64]
	m.Update("a", math.NaN())
	m.Update("b", 0)
	root, changes := m.root, m.changes
	m.Update("a", math.NaN())
	m.Update("b", math.Copysign(0, -1))
	if value, _ := m.Get("b"); m.Len() != 2 || m.root != root || m.changes != changes || math.Signbit(value) {
		t.Errorf("len %d, %d changes, want %d; b is %v", m.Len(), m.changes, changes, value)
	}
}

// TestNaN: NaN is the least value, the least key, and one key.
func TestNaN(t *testing.T) {
	nan := math.NaN()
	var m Map[float64, float64]
	m.Update(1, math.Inf(-1))
	m.Update(2, nan)
	m.Update(nan, nan)
	m.Update(nan, nan)
	if key, value, ok := m.Lowest(); key == key || value == value || !ok || m.Len() != 3 {
		t.Errorf("lowest of %d is %v, %v, %v", m.Len(), key, value, ok)
	}
	m.Update(nan, 5)
	if value, ok := m.Get(nan); value != 5 || !ok {
		t.Errorf("the value of NaN is %v, %v", value, ok)
	}
	for key, _, ok := m.Lowest(); ok; key, _, ok = m.Lowest() { // terminates
		if !m.Erase(key) {
			t.Fatalf("%v was not erased", key)
		}
	}
	if m.Erase(nan) || m.Len() != 0 {
		t.Errorf("%d are left", m.Len())
	}
}

func TestZeroValueIsEmpty(t *testing.T) {
	var m Map[int, int]
	_, _, lowest := m.Lowest()
	_, got := m.Get(0)
	if lowest || got || m.Erase(0) || m.Len() != 0 || len(maps.Collect(m.All())) != 0 {
		t.Error("an empty map has a lowest pair")
	}
}

// TestDepth: the depth grows with the logarithm, even if values are added in order.
func TestDepth(t *testing.T) {
	const n, depth = 1 << 16, 17 // the depth of a full tree with as many nodes
	var m Map[int, int]
	for i := range n {
		m.Update(i, i)
	}
	if m.root.height > depth {
		t.Errorf("%d nodes have depth %d", n, m.root.height)
	}
	for i := range n {
		m.Update(i, -i)
	}
	if m.root.height > depth {
		t.Errorf("after as many changes: %d", m.root.height)
	}
}

func TestUpdateOfAKnownKeyAllocatesNothing(t *testing.T) {
	var m Map[int, int]
	for i := range 100 {
		m.Update(i, i)
	}
	next := 0
	if allocs := testing.AllocsPerRun(1000, func() {
		next++
		m.Update(next%100, next*7919%101)
		m.Lowest()
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// TestLoopEndsWhereItBreaks: a break ends a loop, and the next loop begins at the start.
func TestLoopEndsWhereItBreaks(t *testing.T) {
	var m Map[int, int]
	for i := range 10 {
		m.Update(i, -i)
	}
	all := m.All()
	for range 2 {
		var keys []int
		for key := range all {
			if keys = append(keys, key); len(keys) == 3 {
				break
			}
		}
		if !slices.Equal(keys, []int{9, 8, 7}) {
			t.Errorf("%v", keys)
		}
	}
}

// BenchmarkUpdate moves one of 1000 keys to another position.
func BenchmarkUpdate(b *testing.B) {
	const n = 1000
	var m Map[int, int]
	for i := range n {
		m.Update(i, i)
	}
	next := 0
	for b.Loop() {
		next++
		m.Update(next%n, next*7919%1009) // a different position each time
	}
}

// BenchmarkAll measures one step of a loop over 1000 pairs.
func BenchmarkAll(b *testing.B) {
	const n = 1000
	var m Map[int, int]
	for i := range n {
		m.Update(i, i*7919%n)
	}
	sum, steps := 0, 0
	for b.Loop() {
		for _, value := range m.All() {
			sum += value
			steps++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
}
