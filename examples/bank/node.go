package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/topo"
)

const (
	requestTimeout  = 2 * time.Second // for the answer of the ledger: longer than an election usually takes
	shutdownTimeout = 3 * time.Second // for accepted requests: longer than requestTimeout
	headerBytesMax  = 16 << 10        // of a request
)

// newBank returns the topology. With alone, the ledger has a log on one disk, as it
// would without raft in the topology file.
func newBank(alone bool, change ...func(*raft.Config)) (*Topology, error) {
	return New(Processors{
		Ledger: func(topo.Instance) (*Ledger, error) {
			if alone {
				change = append(change, func(c *raft.Config) { c.Peers = nil })
			}
			return NewLedger(change...)
		},
	})
}

// serveNode runs one of the bank's processes: it prints its address and serves until
// ctx ends.
func serveNode(ctx context.Context, out io.Writer, address string, alone bool) error {
	topology, err := newBank(alone)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "serving on http://%v\n", listener.Addr())
	return serve(ctx, listener, topology)
}

// serve serves requests until ctx ends. It stops the parts in the order in which
// requests travel: the server, then the external processors, then the topology.
func serve(ctx context.Context, listener net.Listener, topology *Topology) error {
	server := &http.Server{
		Handler:           newHandler(topology),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    headerBytesMax,
	}
	ctx, fail := context.WithCancel(ctx)
	defer fail()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ran, served := make(chan error, 1), make(chan error, 1)
	go func() {
		defer fail() // a failed ledger, for example because of a full disk, ends the process
		ran <- topology.Run(running)
	}()
	go func() {
		defer fail()
		served <- server.Serve(listener)
	}()
	<-ctx.Done()

	timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(timeout)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // connections that have not sent a request
	}
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	topology.Api().Close()
	stop()
	if e := <-ran; errors.Is(e, pool.ErrDrainTimeout) {
		slog.Warn("a standing order was pending, and there was no majority any more", "error", e)
	} else {
		err = errors.Join(err, e)
	}
	return err
}
