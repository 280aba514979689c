package topo

import (
	"context"

	"github.com/topogen/topogen/runtime/internal/alive"
)

// Alive reports progress of a handler whose call takes long: the period of
// `health.timeout` starts again. ctx is the context that the handler got, or a context
// derived from it. Any goroutine may call Alive, any number of times. It has no effect
// for a processor without health, and outside of a topology.
func Alive(ctx context.Context) { alive.Report(ctx) }
