package sizes

import (
	"context"
	"fmt"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// Run sends n messages of one kind.
func Run(n int, kind Kind, options ...pool.Option) error {
	topology, err := New(Processors{
		Source: func(in topo.Instance) (*Source, error) {
			if in.Index == 0 {
				return &Source{kind: kind, left: n}, nil
			}
			return &Source{}, nil
		},
	}, options...)
	if err != nil {
		return err
	}
	if err := topology.Run(context.Background()); err != nil {
		return err
	}
	if got := topology.Sink(1).Handled; got != n {
		return fmt.Errorf("sizes: %d of %d messages arrived", got, n)
	}
	return nil
}
