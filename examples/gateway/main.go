// Command gateway is a small HTTP service in front of a topology: each request is a
// message to the instance that keeps its account, and the request waits for the reply.
// See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go run ../../cmd/topogen build

// shutdownTimeout limits the time in which accepted requests are read and answered. It is
// more than the timeouts of the edges.
const shutdownTimeout = 3 * time.Second

type options struct {
	addr    string
	folder  string        // of the journals; "": a temporary folder
	sync    bool          // sync the journals
	load    time.Duration // how long the built-in clients run; 0: serve until interrupted
	clients int           // number of built-in clients
}

func main() {
	var o options
	flag.StringVar(&o.addr, "addr", "127.0.0.1:0", "address to serve on; port 0 means any free port")
	flag.StringVar(&o.folder, "dir", "", "folder of the journals (default a temporary one)")
	flag.BoolVar(&o.sync, "sync", false, "wait for the disk at each deposit")
	flag.DurationVar(&o.load, "load", 0, "run the built-in client for this long, then stop")
	flag.IntVar(&o.clients, "clients", 16, "number of requests that the built-in clients have in progress at the same time")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.folder == "" {
		folder, err := os.MkdirTemp("", "gateway")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		o.folder = folder
	}
	topology, err := New(Processors{
		Accounts: func(i topo.Instance) (*Accounts, error) {
			// The instance of an account depends on the number of instances.
			name := fmt.Sprintf("accounts-%d-of-%d.journal", i.Index+1, i.Number)
			return OpenAccounts(filepath.Join(o.folder, name), o.sync)
		},
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.addr)
	if err != nil {
		return err
	}
	url := "http://" + listener.Addr().String()
	fmt.Println("serving on", url)

	var report loadReport
	work := untilInterrupted
	if o.load > 0 {
		work = func(ctx context.Context) (err error) {
			report, err = runLoad(ctx, url, o.clients, o.load)
			return err
		}
	}
	if err := serve(ctx, listener, topology, work); err != nil {
		return err
	}
	booked := topology.Ledger(0).Deposits
	if o.load > 0 {
		fmt.Print(report)
		if booked < report.deposits {
			return fmt.Errorf("%d deposits were answered, but only %d booked", report.deposits, booked)
		}
	}
	fmt.Printf("drained: %d deposits booked\n", booked)
	return nil
}

func untilInterrupted(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// serve answers requests until work returns. Then it stops the parts in the order in
// which requests travel, so that no accepted request is lost. First the server stops
// accepting requests and waits for those in progress. Then the external sender is closed,
// and the topology runs until it is empty.
func serve(ctx context.Context, listener net.Listener, topology *Topology, work func(context.Context) error) error {
	server := &http.Server{Handler: newHandler(topology.Api()), ReadHeaderTimeout: 5 * time.Second}
	workCtx, cancel := context.WithCancel(ctx)
	ran, served := make(chan error, 1), make(chan error, 1)
	go func() {
		defer cancel() // if the topology fails, the program ends
		// Not ctx: an interrupt must not stop the topology before the last request.
		ran <- topology.Run(context.WithoutCancel(ctx))
	}()
	go func() {
		defer cancel()
		served <- server.Serve(listener)
	}()
	err := work(workCtx)

	timeout, cancelTimeout := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancelTimeout()
	shutdownErr := server.Shutdown(timeout)
	if errors.Is(shutdownErr, context.DeadlineExceeded) {
		shutdownErr = server.Close() // connections that have not sent a request
	}
	err = errors.Join(err, shutdownErr)
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	topology.Api().Close()
	return errors.Join(err, <-ran)
}
