// Package noedges has a topology without edges.
package noedges

type Idle struct{}
