package rankedmap

import "cmp"

// node is a pair and also the root of a tree of pairs: lesser pairs are on its left,
// greater ones on its right, and the heights of the two sides differ by at most one
// (Adelson-Velsky and Landis, "An algorithm for the organization of information", 1962).
// The nil node is the empty tree.
type node[K, V cmp.Ordered] struct {
	key         K
	value       V
	left, right *node[K, V]
	height      int8 // 1 for a single node; less than 93 for 2^64 nodes
}

// compare orders pairs: by value, then key.
func (n *node[K, V]) compare(key K, value V) int {
	if c := cmp.Compare(n.value, value); c != 0 {
		return c // cmp.Or would always compare the keys too
	}
	return cmp.Compare(n.key, key)
}

// with returns tree n with the single node added. The tree has no equal node.
func (n *node[K, V]) with(added *node[K, V]) *node[K, V] {
	if n == nil {
		added.left, added.right, added.height = nil, nil, 1
		return added
	}
	if n.compare(added.key, added.value) > 0 {
		n.left = n.left.with(added)
	} else {
		n.right = n.right.with(added)
	}
	return n.balanced()
}

// without returns tree n without one of its nodes.
func (n *node[K, V]) without(erased *node[K, V]) *node[K, V] {
	switch {
	case n != erased && n.compare(erased.key, erased.value) > 0:
		n.left = n.left.without(erased)
	case n != erased:
		n.right = n.right.without(erased)
	case n.left == nil:
		return n.right
	case n.right == nil:
		return n.left
	default:
		successor := n.right.first()
		successor.right = n.right.without(successor)
		successor.left = n.left
		n = successor
	}
	return n.balanced()
}

// first returns the least node of the tree n, which is not empty.
func (n *node[K, V]) first() *node[K, V] {
	for n.left != nil {
		n = n.left
	}
	return n
}

// leftmost appends the path to the least node of tree n to path. The path then holds, in
// reverse order, the next nodes of a loop whose left sides are done.
func (n *node[K, V]) leftmost(path []*node[K, V]) []*node[K, V] {
	for ; n != nil; n = n.left {
		path = append(path, n)
	}
	return path
}

// above appends the path to the least node of tree n that is greater than the pair, in
// the form of leftmost.
func (n *node[K, V]) above(key K, value V, path []*node[K, V]) []*node[K, V] {
	for n != nil {
		if n.compare(key, value) > 0 {
			path = append(path, n)
			n = n.left
		} else {
			n = n.right
		}
	}
	return path
}

// balanced restores the balance after the height of one side has changed by one.
func (n *node[K, V]) balanced() *node[K, V] {
	switch n.balance() {
	case -2:
		if n.left.balance() > 0 {
			n.left = n.left.rotatedLeft()
		}
		n = n.rotatedRight()
	case 2:
		if n.right.balance() < 0 {
			n.right = n.right.rotatedRight()
		}
		n = n.rotatedLeft()
	}
	n.updateHeight()
	return n
}

// balance is the difference between the heights of the right and the left side.
func (n *node[K, V]) balance() int8 { return n.right.heightOf() - n.left.heightOf() }

// heightOf is the height of the tree, 0 for the empty tree.
func (n *node[K, V]) heightOf() int8 {
	if n == nil {
		return 0
	}
	return n.height
}

func (n *node[K, V]) updateHeight() { n.height = 1 + max(n.left.heightOf(), n.right.heightOf()) }

// rotatedLeft makes the right child the root. The caller updates the height of the root.
func (n *node[K, V]) rotatedLeft() *node[K, V] {
	root := n.right
	n.right, root.left = root.left, n
	n.updateHeight()
	return root
}

// rotatedRight makes the left child the root. The caller updates the height of the root.
func (n *node[K, V]) rotatedRight() *node[K, V] {
	root := n.left
	n.left, root.right = root.right, n
	n.updateHeight()
	return root
}
