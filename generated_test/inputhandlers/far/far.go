// Package far has a processor that cannot name the generated types.
package far

import "context"

// Far only has AllInputsClosed.
type Far struct{}

func (Far) ReceiveName(string) {}

// AllInputsClosed sends a page through an interface of its own.
func (Far) AllInputsClosed(_ context.Context, out interface{ SendNumbers(n []int) }) error {
	out.SendNumbers([]int{7})
	return nil
}
