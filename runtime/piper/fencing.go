package piper

import (
	"context"

	"github.com/topogen/topogen/runtime/internal/fencing"
	"github.com/topogen/topogen/runtime/topo"
)

// FencingToken is the token with which this process may write for the instance to a store outside of
// the cluster. It is 0 without a cluster.
func (u *Unit) FencingToken() uint64 {
	if b := u.Border(); b != nil {
		return b.FencingToken(u)
	}
	return 0
}

// Instance identifies the instance to its constructor.
func (u *Unit) Instance() topo.Instance {
	in := topo.Instance{Processor: u.proc.Name, Index: u.Index(), Number: u.proc.instances()}
	return in.WithFencingToken(u.FencingToken())
}

// fenced returns a context with the token of an instance, from which all contexts of its handlers are made.
func fenced(u *Unit, ctx context.Context) context.Context {
	return fencing.With(ctx, u.FencingToken())
}
