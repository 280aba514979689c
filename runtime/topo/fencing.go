package topo

import (
	"context"

	"github.com/topogen/topogen/runtime/internal/fencing"
)

// FencingToken returns the fencing token of an instance in a cluster, which grows each time that
// another process may run the instance. A store outside of the cluster refuses a write whose token is
// lower than one that it has seen for the instance. So a process that was replaced, and
// does not know it yet, cannot overwrite what its successor has written.
//
// The token is that of the process when it has constructed the instance, and never a later one. It is 0
// without a cluster. Tokens have no order with `addresses: broadcast`.
func (in Instance) FencingToken() uint64 { return in.token }

// WithFencingToken returns the instance with a token, for tests of a processor.
func (in Instance) WithFencingToken(token uint64) Instance {
	in.token = token
	return in
}

// FencingToken returns the token of the instance whose handler has the context ctx, see
// [Instance.FencingToken]. It is 0 outside of a topology.
func FencingToken(ctx context.Context) uint64 { return fencing.Of(ctx) }
