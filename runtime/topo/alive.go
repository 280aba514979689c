package topo

import (
	"context"

	"github.com/topogen/topogen/runtime/internal/alive"
)

// Alive tells that the handler which was given ctx, or a context made from it,
// makes progress, although its call takes long: the time that `health.timeout`
// allows begins anew. Any goroutine may call it, as often as it likes. For a
// processor without health, and outside of a topology, it does nothing.
func Alive(ctx context.Context) { alive.Tell(ctx) }
