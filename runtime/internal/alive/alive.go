// Package alive carries, in the context of a handler, who hears that the handler
// makes progress. [github.com/topogen/topogen/runtime/topo.Alive] tells them.
package alive

import "context"

// Listener hears that a handler makes progress. Alive may be called from any
// goroutine, any number of times, also after the handler has returned.
type Listener interface{ Alive() }

type key struct{}

// With returns a context of whose progress listener hears, and none that ctx
// carried before.
func With(ctx context.Context, listener Listener) context.Context {
	return context.WithValue(ctx, key{}, listener)
}

// Tell tells the listener of ctx, where it carries one.
func Tell(ctx context.Context) {
	if listener, ok := ctx.Value(key{}).(Listener); ok {
		listener.Alive()
	}
}
