// Package fencing carries the fencing token of an instance in the context of its handlers.
// [github.com/topogen/topogen/runtime/topo.FencingToken] returns it.
package fencing

import "context"

type key struct{}

// With returns a context with a token. It returns ctx if the token is 0.
func With(ctx context.Context, token uint64) context.Context {
	if token == 0 {
		return ctx
	}
	return context.WithValue(ctx, key{}, token)
}

// Of is the token in ctx, or 0 if there is none.
func Of(ctx context.Context) uint64 {
	token, _ := ctx.Value(key{}).(uint64)
	return token
}
