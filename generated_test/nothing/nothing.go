// Package nothing does nothing.
package nothing

type Idle struct{}
