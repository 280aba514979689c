// Package hold carries, in the context of a handler, the counter of the work that its
// instance holds. This work was accepted and is not visible as a message or a reply.
package hold

import "context"

// Counter counts the holds of an instance. Hold may be called from any goroutine. Only
// the first call of a release counts.
type Counter interface{ Hold() (release func()) }

type key struct{}

// With returns a context whose holds are counted by c, which replaces a counter of ctx.
func With(ctx context.Context, c Counter) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// Begin increments the counter of ctx until release is called. If there is no counter,
// outside of a topology, release does nothing.
func Begin(ctx context.Context) (release func()) {
	if c, ok := ctx.Value(key{}).(Counter); ok {
		return c.Hold()
	}
	return func() {}
}
