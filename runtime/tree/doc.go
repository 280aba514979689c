// Package tree shows a topology by index: processors, edges, which lead where,
// and what has travelled along them. Generated code returns one from Tree(); a
// row of rast.md 1.2 and 3.4 (the message passing tree), with two departures:
// indices follow the file's order, not the reverse, and from is from.
package tree
