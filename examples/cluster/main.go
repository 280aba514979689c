// Command cluster counts names on several nodes, which are processes on this host. At the
// end it proves that no message is missing and none came twice. See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go run ../../cmd/topogen build

const (
	nodesMax   = 8             // on one host
	addsMax    = 2_000_000_000 // an int may have 32 bits
	addsNormal = 10_000_000    // some seconds on two cores
)

func main() {
	nodes := flag.Int("nodes", 1, "processes of the cluster, 1 to 8; with 1 everything runs in this process, unless TOPOGEN_NODE is set")
	adds := flag.Int("adds", addsNormal, "how many messages the sources send")
	child := flag.Bool("child", false, "stop at the end of stdin, and not on an interrupt; set by -nodes")
	flag.Parse()

	ctx := context.Background()
	if *child {
		signal.Ignore(os.Interrupt) // the parent handles it and stops its children
		ctx = untilParentEnds(ctx, os.Stdin)
	} else {
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		// A second interrupt stops the program at once. The handler remains for a
		// second, because timeout(1) and some shells send the first interrupt twice.
		context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	}
	var err error
	switch {
	case flag.NArg() > 0 || *nodes < 1 || *nodes > nodesMax || *adds < 0 || *adds > addsMax:
		err = fmt.Errorf("-nodes must be 1 to %d, -adds 0 to %d; arguments after the flags are not allowed", nodesMax, addsMax)
	case *nodes > 1:
		err = runNodes(ctx, os.Stdout, *nodes, *adds)
	default:
		err = run(ctx, os.Stdout, *adds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// run runs the topology in this process, or one node of it if the environment names the
// node.
func run(ctx context.Context, out io.Writer, adds int) error {
	var topology *Topology
	topology, err := New(Processors{
		Load:    func(in topo.Instance) (*Load, error) { return newLoad(in, adds), nil },
		Counter: func(in topo.Instance) (*Counter, error) { return newCounter(in), nil },
		Report: func(topo.Instance) (*Report, error) {
			return newReport(out, func() *cluster.View { return topology.Cluster() }), nil
		},
	})
	if err != nil {
		return err
	}
	return topology.Run(ctx)
}

// untilParentEnds returns a context that ends when stdin ends. The end of the parent
// process also ends stdin, even if the parent is killed.
func untilParentEnds(ctx context.Context, stdin io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	return ctx
}
