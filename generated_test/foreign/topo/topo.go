// Package topo has the name of a package of the runtime.
package topo

type Point struct{ X, Y int }
