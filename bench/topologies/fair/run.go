package fair

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/bench/peers"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// jobsEach is the number of jobs of each busy instance.
const jobsEach = 16

// Run measures for d, beside jobs of the given steps.
func Run(d time.Duration, steps int, options ...pool.Option) (*peers.Delays, error) {
	var stop atomic.Bool
	delays := new(peers.Delays)
	topology, err := New(Processors{
		Busy:    func(topo.Instance) (*Busy, error) { return &Busy{steps, &stop}, nil },
		Feed:    func(topo.Instance) (*Feed, error) { return &Feed{&stop}, nil },
		Sink:    func(topo.Instance) (*Sink, error) { return &Sink{delays}, nil },
		Sleeper: func(topo.Instance) (*Sleeper, error) { return &Sleeper{delays}, nil },
	}, options...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background()) // ends the timer
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- topology.Run(ctx) }()
	door := topology.Door()
	for range jobsEach {
		if err := door.SendJob(ctx, Job{}); err != nil {
			return nil, err
		}
	}
	err = delays.Probe(d, peers.Probes{
		Send:     func() error { return door.SendSent(ctx, Sent{time.Now()}) },
		Blocking: func() error { return door.SendSlow(ctx, Slow{time.Now()}) },
		Health:   func() { topology.Snapshot() },
	})
	stop.Store(true)
	cancel()
	if failed := <-ended; failed != nil && err == nil {
		err = failed
	}
	return delays, err
}
