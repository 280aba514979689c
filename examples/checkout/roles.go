package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/server"
	"github.com/topogen/topogen/runtime/durable/store"
)

// retryTimeout is when the server sends a task again whose message was lost, for example because
// its worker was killed at that moment. The default of 30 s would prolong the demonstration.
const retryTimeout = time.Second

// serve is the process with the store, as topoctl durable serve.
func serve(ctx context.Context, dir, address string) error {
	disk, err := store.Open(dir, store.Options{})
	if err != nil {
		return err
	}
	e, err := engine.Open(engine.Config{Store: disk, Core: core.Config{RetryTimeout: retryTimeout.Milliseconds()}})
	if err != nil {
		return err
	}
	s, err := server.Listen(server.Config{Backend: e, Listen: address})
	if err != nil {
		return err
	}
	fmt.Println("serving")
	select {
	case <-ctx.Done():
	case err = <-s.Failed():
	case <-e.Stopped():
		err = e.Err()
	}
	return err // the process ends without ceremony: the store is made for that
}

// work is a process that runs the topology. Its store is in the process of the server:
// TOPOGEN_DURABLE_STORE has the URL.
func work(ctx context.Context) error {
	t, err := New(Processors{})
	if err != nil {
		return err
	}
	return t.Run(ctx)
}

// untilParentEnds returns a context that ends when stdin ends. The end of the parent
// process also ends stdin, even if the parent is killed.
func untilParentEnds(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}
