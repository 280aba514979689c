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
	requestTimeout  = 2 * time.Second  // for the answer of the ledger: longer than an election mostly takes
	shutdownTimeout = 10 * time.Second // for requests that were accepted: more than the five seconds that net/http gives a new connection
	headerBytesMax  = 16 << 10         // of a request; nobody has a reason to send more
)

// newBank makes the topology. Alone, its ledger stands on one disk, as it would
// without raft in the file.
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

// serveNode is one of the bank's processes: it says where it serves, and does so
// until ctx ends.
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

// serve answers requests until ctx ends. It stops in the order in which requests
// travel: the server first, then those outside the topology, then the topology.
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
		defer fail() // a ledger that fails, on a full disk for example, ends the process
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
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	topology.Api().Close()
	stop()
	if e := <-ran; errors.Is(e, pool.ErrDrainTimeout) {
		slog.Warn("a standing order was under way, and there was no majority any more", "error", e)
	} else {
		err = errors.Join(err, e)
	}
	return err
}
