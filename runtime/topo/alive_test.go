package topo

import (
	"context"
	"testing"

	"github.com/topogen/topogen/runtime/internal/alive"
)

type counter int

func (c *counter) Alive() { *c++ }

// TestAlive checks that the innermost listener of a context is called, also through
// derived contexts.
func TestAlive(t *testing.T) {
	var outer, inner counter
	Alive(t.Context())
	ctx := alive.With(t.Context(), &outer)
	Alive(ctx)
	ctx, cancel := context.WithCancel(alive.With(ctx, &inner))
	Alive(ctx)
	cancel()
	Alive(ctx)
	if outer != 1 || inner != 2 {
		t.Errorf("the listeners were called %d and %d times, want 1 and 2", outer, inner)
	}
}

// TestAliveAllocatesNothing matters because handlers call Alive in loops.
func TestAliveAllocatesNothing(t *testing.T) {
	ctx := alive.With(t.Context(), new(counter))
	if n := testing.AllocsPerRun(100, func() { Alive(ctx) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
