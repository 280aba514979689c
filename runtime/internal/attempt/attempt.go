// Package attempt carries the number of the attempt at a message in the context of its
// handler. [github.com/topogen/topogen/runtime/topo.Attempt] returns it.
package attempt

import "context"

type key struct{}

// With returns a context for the n-th attempt.
func With(ctx context.Context, n int) context.Context { return context.WithValue(ctx, key{}, n) }

// Of is the number of the attempt in ctx, or 1 if there is none.
func Of(ctx context.Context) int {
	if n, ok := ctx.Value(key{}).(int); ok {
		return n
	}
	return 1
}
