package process

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/topo"
)

// TestErrorsOfSeveralSignals checks that an error with several sentinels is the same signal in the
// process that returns it and in its parent, or in neither.
func TestErrorsOfSeveralSignals(t *testing.T) {
	other := errors.New("other")
	for _, err := range []error{
		fmt.Errorf("%w: %w", topo.Done, context.Canceled),
		fmt.Errorf("%w: %w: %w", other, topo.Done, context.Canceled),
		fmt.Errorf("read: %w", fmt.Errorf("%w: %w", context.Canceled, topo.ErrStopping)),
		fmt.Errorf("%w: %w", topo.Idle, topo.Done),
		fmt.Errorf("%w: %w", errors.Join(topo.Done, other), topo.Idle),
		errors.Join(topo.Idle, topo.Done),
		errors.Join(topo.Done, context.Canceled),
		errors.Join(topo.ErrStopping, context.Canceled),
		errors.Join(topo.Done, fmt.Errorf("%w: %w", topo.Done, context.Canceled)),
		errors.Join(topo.Done, other),
		errors.Join(topo.Done, fmt.Errorf("%w: %w", topo.Idle, other)),
	} {
		f := fields{rest: appendError(nil, err, nil)}
		got := f.error()
		for _, signals := range [][]error{{topo.Done, topo.Idle}, {topo.ErrStopping, context.Canceled}, {topo.Done}} {
			want, _ := chain.Sort(err, signals...)
			if is, _ := chain.Sort(got, signals...); is != want {
				t.Errorf("%q counts as %v among %v, want %v", err, is, signals, want)
			}
		}
		for _, s := range sentinels {
			if errors.Is(got, s) != errors.Is(err, s) {
				t.Errorf("%q matches %v: %v", err, s, errors.Is(got, s))
			}
		}
	}
}
