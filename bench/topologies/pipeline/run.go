package pipeline

import (
	"context"
	"fmt"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// Run sends n messages through the pipeline, whose stages do the given steps of work for
// each.
func Run(n, steps int, options ...pool.Option) error {
	topology, err := New(Processors{
		Source: func(topo.Instance) (*Source, error) { return &Source{left: n}, nil },
		First:  func(topo.Instance) (*First, error) { return &First{steps: steps}, nil },
		Second: func(topo.Instance) (*Second, error) { return &Second{steps: steps}, nil },
		Third:  func(topo.Instance) (*Third, error) { return &Third{steps: steps}, nil },
	}, options...)
	if err != nil {
		return err
	}
	if err := topology.Run(context.Background()); err != nil {
		return err
	}
	if got := topology.Third(0).handled; got != n {
		return fmt.Errorf("pipeline: %d of %d messages arrived", got, n)
	}
	return nil
}
