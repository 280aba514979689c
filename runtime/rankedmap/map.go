package rankedmap

import (
	"cmp"
	"iter"
)

// Map holds a value for each key and is ordered by value, then key. The zero value is an
// empty map, ready to use. Do not copy a Map after its first use. It is not safe for
// concurrent use.
type Map[K, V cmp.Ordered] struct {
	nodes   map[K]*node[K, V] // of all keys except NaN
	nan     *node[K, V]       // of the key NaN, which cannot be looked up in a Go map
	root    *node[K, V]
	changes uint64 // counts changes of the tree, so that a loop detects them
}

// Len is the number of keys.
func (m *Map[K, V]) Len() int {
	if m.nan != nil {
		return len(m.nodes) + 1
	}
	return len(m.nodes)
}

// Get returns the value of key, and whether the map has the key.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	n := m.find(key)
	if n == nil {
		return value, false
	}
	return n.value, true
}

// Update sets the value of key. It does nothing if the value is equal to the current one.
func (m *Map[K, V]) Update(key K, value V) {
	n := m.find(key)
	switch {
	case n == nil:
		n = &node[K, V]{key: key, value: value}
		m.index(n)
	case cmp.Compare(n.value, value) == 0:
		return
	default:
		m.root = m.root.without(n)
		n.value = value
	}
	m.root = m.root.with(n)
	m.changes++
}

// Erase removes key, and reports whether it was there.
func (m *Map[K, V]) Erase(key K) bool {
	n := m.find(key)
	if n == nil {
		return false
	}
	m.root = m.root.without(n)
	m.changes++
	if isNaN(key) {
		m.nan = nil
	} else {
		delete(m.nodes, key)
	}
	return true
}

// Lowest returns the pair with the least value and, among equal values, the least key. ok
// is false if the map is empty.
func (m *Map[K, V]) Lowest() (key K, value V, ok bool) {
	if m.root == nil {
		return key, value, false
	}
	n := m.root.first()
	return n.key, n.value, true
}

// All iterates over all pairs, ascending by value, then key. The loop may change the map:
// each step yields the lowest pair that is above the last one at that time. A pair that
// is erased before the loop reaches it is skipped, and a key is yielded again if its
// value rises. A step after a change takes O(log n).
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		stack := m.root.leftmost(nil)
		for len(stack) > 0 {
			last := len(stack) - 1
			n := stack[last]
			key, value, changes := n.key, n.value, m.changes
			if !yield(key, value) {
				return
			}
			if m.changes == changes {
				stack = n.right.leftmost(stack[:last])
			} else {
				stack = m.root.above(key, value, stack[:0])
			}
		}
	}
}

// find returns the node of key, or nil.
func (m *Map[K, V]) find(key K) *node[K, V] {
	if isNaN(key) {
		return m.nan
	}
	return m.nodes[key]
}

// index stores n as the node of its key.
func (m *Map[K, V]) index(n *node[K, V]) {
	switch {
	case isNaN(n.key):
		m.nan = n
		return
	case m.nodes == nil:
		m.nodes = make(map[K]*node[K, V])
	}
	m.nodes[n.key] = n
}

// isNaN reports whether x is NaN, the only value that is not equal to itself.
func isNaN[T cmp.Ordered](x T) bool { return x != x }
