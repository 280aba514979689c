// Package attempt carries, in the context of a handler, how often its message was
// given to a handler. [github.com/topogen/topogen/runtime/topo.Attempt] returns it.
package attempt

import "context"

type key struct{}

// With returns a context of the n-th attempt.
func With(ctx context.Context, n int) context.Context { return context.WithValue(ctx, key{}, n) }

// Of is the number of the attempt that ctx belongs to, 1 where it carries none.
func Of(ctx context.Context) int {
	if n, ok := ctx.Value(key{}).(int); ok {
		return n
	}
	return 1
}
