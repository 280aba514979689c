// Package noedges does nothing.
package noedges

type Idle struct{}
