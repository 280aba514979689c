// Command checkout carries out orders while the processes that do so are killed. At the end it
// proves that each order was completed or compensated, and that no card was charged twice.
// See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

//go:generate go run ../../cmd/topogen build

func main() {
	s := settings{}
	flag.IntVar(&s.orders, "orders", 150, "how many orders are placed, 0 to 10000; with 0 nothing is killed, and the processes run until an interrupt, for orders from outside")
	flag.IntVar(&s.workers, "workers", 3, "how many worker processes run, 1 to 16")
	flag.IntVar(&s.kills, "kills", 20, "how many processes are killed, 0 to 1000")
	flag.Uint64Var(&s.seed, "seed", 1, "seed of the random choices")
	dir := flag.String("serve", "", "be the server, with its store in this folder; set by the demonstration")
	address := flag.String("address", "127.0.0.1:8001", "with -serve: where to listen")
	worker := flag.Bool("work", false, "be a worker; set by the demonstration")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	var err error
	switch {
	case *dir != "":
		err = serve(untilParentEnds(ctx), *dir, *address)
	case *worker:
		err = work(untilParentEnds(ctx))
	case flag.NArg() > 0 || s.orders < 0 || s.orders > 10_000 || s.workers < 1 || s.workers > 16 || s.kills < 0 || s.kills > 1000:
		err = fmt.Errorf("-orders must be 0 to 10000, -workers 1 to 16, -kills 0 to 1000; arguments after the flags are not allowed")
	default:
		err = demonstrate(ctx, os.Stdout, s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "checkout:", err)
		os.Exit(1)
	}
}
