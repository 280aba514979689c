// Package graph shows a topology as a graph by index: its processors, its edges,
// how they are connected, and how many messages each edge has carried. The
// generated method Tree returns one. Indices follow the order of the topology file.
package graph
