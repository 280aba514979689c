// Package hold carries, in the context of a handler, the counter of work that its
// instance holds back: work that was accepted and that no message or answer shows yet.
package hold

import "context"

// Counter counts what an instance holds. Hold may be called from any goroutine. Each
// release counts once, however often it is called.
type Counter interface{ Hold() (release func()) }

type key struct{}

// With returns a context whose holds are counted by c, and by no counter that ctx
// carried before.
func With(ctx context.Context, c Counter) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// Begin adds one to the counter of ctx until release is called. Without a counter,
// outside of a topology, release does nothing.
func Begin(ctx context.Context) (release func()) {
	if c, ok := ctx.Value(key{}).(Counter); ok {
		return c.Hold()
	}
	return func() {}
}
