// Package tree shows a topology by index: processors, edges, which lead where,
// and what has travelled along them. Generated code returns one from Tree().
// Indices follow the order of the file.
//
// It is modelled on the message passing tree of rast.md 1.2 and 3.4
// (docs/reference/rast.md), whose indices run the other way.
package tree
