// Package rankedmap holds a map that knows its lowest values.
//
// [Map] holds a value for each key, finds it by the key, and keeps the keys in
// the order of their values, as in rast.md 2.10 (docs/reference/rast.md):
//
//	var load rankedmap.Map[string, time.Duration]
//	load.Update("ann", 3*time.Second)
//	load.Update("bob", time.Second)
//	name, least, _ := load.Lowest() // bob, 1s
//
// # Guarantees
//
// Pairs ascend by value, those of equal values by key. Both compare as
// [cmp.Compare] does: NaN is less than all numbers and equal to itself, so it is
// a value, and a key, like another; -0 equals 0. Equal values are the same value:
// an Update with one changes nothing.
//
// Get and a step of a loop take constant time, everything else takes O(log n)
// comparisons. Of the methods that change the map only Update with a new key
// allocates. None fails, so none leaves anything half done.
//
// # Limits
//
// A Map is not safe for concurrent use. A loop over All may change the map it
// runs over.
//
// # Design
//
// A Go map leads from a key to its node, and the nodes are an AVL tree by value
// and key. A heap would be smaller and cannot be iterated in order; a skip list or
// a treap needs random numbers for what the AVL tree guarantees.
package rankedmap
