package door

import (
	"context"
	"fmt"
	"sync"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// Open starts the topology. The handler calls tell with each message; stop ends the
// topology.
func Open(tell func(Message), options ...pool.Option) (send func(Message) error, stop func() error, err error) {
	topology, err := New(Processors{
		Sink: func(topo.Instance) (*Sink, error) { return &Sink{tell: tell}, nil },
	}, options...)
	if err != nil {
		return nil, nil, err
	}
	ended := make(chan error, 1)
	ctx := context.Background()
	go func() { ended <- topology.Run(ctx) }()
	send = func(m Message) error { return topology.Door().SendMessage(ctx, m) }
	stop = func() error {
		topology.Door().Close()
		return <-ended
	}
	return send, stop, nil
}

// Run sends n messages from several goroutines.
func Run(n, goroutines int, options ...pool.Option) error {
	topology, err := New(Processors{}, options...)
	if err != nil {
		return err
	}
	ctx := context.Background()
	var senders sync.WaitGroup
	failed := make(chan error, goroutines)
	for range goroutines {
		senders.Go(func() {
			for i := range n / goroutines {
				if err := topology.Door().SendMessage(ctx, Message{int64(i)}); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	go func() {
		senders.Wait()
		topology.Door().Close()
	}()
	if err := topology.Run(ctx); err != nil {
		return err
	}
	if len(failed) > 0 {
		return <-failed
	}
	if got, want := topology.Sink(0).handled, n/goroutines*goroutines; got != want {
		return fmt.Errorf("door: %d of %d messages arrived", got, want)
	}
	return nil
}
