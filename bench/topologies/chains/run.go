package chains

import (
	"context"
	"fmt"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// Chains is the number of chains.
const Chains = 16

// Run sends n messages in all, the same number through each chain. The worker of the
// first chain takes times as many steps as the others.
func Run(n, steps, times int, options ...pool.Option) error {
	each := max(n/Chains, 1)
	topology, err := New(Processors{
		Source: func(topo.Instance) (*Source, error) { return &Source{left: each * Chains}, nil },
		Worker: func(in topo.Instance) (*Worker, error) {
			if in.Index == 0 {
				return &Worker{steps * times}, nil
			}
			return &Worker{steps}, nil
		},
	}, options...)
	if err != nil {
		return err
	}
	if err := topology.Run(context.Background()); err != nil {
		return err
	}
	for i := range Chains {
		if got := topology.Sink(i).handled; got != each {
			return fmt.Errorf("chains: %d of %d messages arrived in chain %d", got, each, i)
		}
	}
	return nil
}
