package rankedmap

import (
	"cmp"
	"slices"

	"pgregory.net/rapid"
)

// pair and model implement the map as a sorted slice.
type pair[K, V cmp.Ordered] struct {
	key   K
	value V
}

type model[K, V cmp.Ordered] []pair[K, V]

func compare[K, V cmp.Ordered](a, b pair[K, V]) int {
	return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.key, b.key))
}

func same[K, V cmp.Ordered](a, b pair[K, V]) bool { return compare(a, b) == 0 }

// of returns the index of key, or -1.
func (m model[K, V]) of(key K) int {
	return slices.IndexFunc(m, func(p pair[K, V]) bool { return cmp.Compare(p.key, key) == 0 })
}

func (m *model[K, V]) update(key K, value V) {
	if i := m.of(key); i >= 0 {
		*m = slices.Delete(*m, i, i+1)
	}
	*m = append(*m, pair[K, V]{key, value})
	slices.SortFunc(*m, compare)
}

func (m *model[K, V]) erase(key K) bool {
	i := m.of(key)
	if i >= 0 {
		*m = slices.Delete(*m, i, i+1)
	}
	return i >= 0
}

// after returns the lowest pair above last.
func (m model[K, V]) after(last pair[K, V]) (pair[K, V], bool) {
	i := slices.IndexFunc(m, func(p pair[K, V]) bool { return compare(p, last) > 0 })
	if i < 0 {
		return last, false
	}
	return m[i], true
}

// checkedMap is a map and its model; each operation is applied to both.
type checkedMap[K, V cmp.Ordered] struct {
	real  Map[K, V]
	model model[K, V]
}

func (w *checkedMap[K, V]) update(key K, value V) {
	w.real.Update(key, value)
	w.model.update(key, value)
}

func (w *checkedMap[K, V]) erase(t *rapid.T, key K) {
	if got, want := w.real.Erase(key), w.model.erase(key); got != want {
		t.Fatalf("Erase(%v) returned %v, want %v", key, got, want)
	}
}

// check compares the content of the map with the model, and checks the tree.
func (w *checkedMap[K, V]) check(t *rapid.T) {
	if w.real.Len() != len(w.model) {
		t.Fatalf("Len is %d, want %d", w.real.Len(), len(w.model))
	}
	key, value, ok := w.real.Lowest()
	if ok != (len(w.model) > 0) || ok && !same(pair[K, V]{key, value}, w.model[0]) {
		t.Fatalf("Lowest of %v: %v, %v, %v", w.model, key, value, ok)
	}
	for _, p := range w.model {
		if value, ok := w.real.Get(p.key); !ok || !same(pair[K, V]{p.key, value}, p) {
			t.Fatalf("Get(%v) returned %v, %v, want %v", p.key, value, ok, p.value)
		}
	}
	var all model[K, V]
	for key, value := range w.real.All() {
		all = append(all, pair[K, V]{key, value})
	}
	if !slices.EqualFunc(all, w.model, same) {
		t.Fatalf("All: got %v, want %v", all, w.model)
	}
	checkTree(t, w.real.root)
}

// checkTree checks the heights of tree n.
func checkTree[K, V cmp.Ordered](t *rapid.T, n *node[K, V]) {
	if n == nil {
		return
	}
	checkTree(t, n.left)
	checkTree(t, n.right)
	if balance := n.balance(); balance < -1 || balance > 1 || n.height != 1+max(n.left.heightOf(), n.right.heightOf()) {
		t.Fatalf("a node of height %d above %d and %d", n.height, n.left.heightOf(), n.right.heightOf())
	}
}
