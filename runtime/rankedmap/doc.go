// Package rankedmap provides a map that is also ordered by its values.
//
// [Map] holds a value for each key, finds the value by the key, and keeps the keys in
// the order of their values:
//
//	var load rankedmap.Map[string, time.Duration]
//	load.Update("ann", 3*time.Second)
//	load.Update("bob", time.Second)
//	name, least, _ := load.Lowest() // bob, 1s
//
// # Guarantees
//
// Pairs ascend by value, and pairs with equal values ascend by key. Values and keys
// compare as in [cmp.Compare]: NaN is less than all numbers and equal to itself, so it
// can be a value and a key, and -0 equals 0. An Update with an equal value changes
// nothing.
//
// Get, and a step of a loop, take constant time. All other methods take O(log n)
// comparisons. Of the methods that change the map, only Update with a new key allocates.
// No method fails, so no change is left incomplete.
//
// # Limits
//
// A Map is not safe for concurrent use. A loop over All may change the map that it
// iterates over.
//
// # Design
//
// A Go map leads from a key to its node, and the nodes form an AVL tree ordered by value
// and key. A heap would be smaller but cannot be iterated in order. A skip list or a
// treap needs random numbers to achieve what the AVL tree guarantees.
package rankedmap
