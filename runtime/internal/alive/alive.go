// Package alive carries a listener for progress in the context of a handler.
// [github.com/topogen/topogen/runtime/topo.Alive] calls it.
package alive

import "context"

// Listener is called when a handler reports progress. Alive may be called from any
// goroutine, any number of times, also after the handler has returned.
type Listener interface{ Alive() }

type key struct{}

// With returns a context with the given listener, which replaces a listener of ctx.
func With(ctx context.Context, listener Listener) context.Context {
	return context.WithValue(ctx, key{}, listener)
}

// Report calls the listener of ctx, if there is one.
func Report(ctx context.Context) {
	if listener, ok := ctx.Value(key{}).(Listener); ok {
		listener.Alive()
	}
}
