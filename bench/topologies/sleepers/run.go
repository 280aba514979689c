package sleepers

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// Run lets the workers work for d, in jobs of the given steps, and returns the number of
// jobs. If sleep is true, the sleepers sleep during that time, from the beginning on.
func Run(d time.Duration, steps int, sleep bool, options ...pool.Option) (jobs int64, err error) {
	var stop atomic.Bool
	topology, err := New(Processors{
		Worker:  func(topo.Instance) (*Worker, error) { return &Worker{steps: steps, stop: &stop}, nil },
		Sleeper: func(topo.Instance) (*Sleeper, error) { return &Sleeper{stop: &stop}, nil },
	}, options...)
	if err != nil {
		return 0, err
	}
	ctx := context.Background()
	ended := make(chan error, 1)
	go func() { ended <- topology.Run(ctx) }()
	if err := topology.Start().SendJob(ctx, Job{}); err != nil {
		return 0, err
	}
	time.Sleep(NapTime) // so that the start is the same with and without sleepers
	before := topology.jobs()
	if sleep {
		if err := topology.Start().SendNap(ctx, Nap{}); err != nil {
			return 0, err
		}
	}
	time.Sleep(d)
	jobs = topology.jobs() - before
	stop.Store(true)
	topology.Start().Close()
	return jobs, <-ended
}

func (t *Topology) jobs() (n int64) {
	for i := range workerInstances {
		n += t.Worker(i).done.Load()
	}
	return n
}

// workerInstances is the number of workers in topology.yml.
const workerInstances = 100
