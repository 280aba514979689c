// Command bank is a ledger on three nodes, which are three processes here. It kills one
// process after the other while clients transfer money. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

//go:generate go run ../../cmd/topogen build

// options of a demonstration.
type options struct {
	nodes   int
	alone   bool
	runFor  time.Duration // how long it runs; 0: until an interrupt
	every   time.Duration // from a start to the next kill; 0: no kills
	any     bool          // kill any node, not only the leader, at random times
	down    time.Duration // from a kill to the start
	clients int           // of each branch
	dir     string        // "": a temporary folder
}

func main() {
	var o options
	flag.IntVar(&o.nodes, "nodes", 3, "processes of the bank, 1 to 9")
	flag.BoolVar(&o.alone, "alone", false, "one process with a log and without raft")
	flag.DurationVar(&o.runFor, "for", 0, "how long to run (default until an interrupt)")
	flag.DurationVar(&o.every, "kill", 3*time.Second, "time from a start to the next kill of a leader; 0: no kills")
	flag.BoolVar(&o.any, "any", false, "kill any node, leader or not, after random times that vary around -kill")
	flag.DurationVar(&o.down, "down", time.Second, "time from a kill to the next start")
	flag.IntVar(&o.clients, "clients", 4, "clients of each of the eight branches")
	flag.StringVar(&o.dir, "dir", "", "folder for the logs (default a temporary folder)")
	serve := flag.String("serve", "", "run as one of the processes, and serve at this address; TOPOGEN_NODE is the name of the node")
	child := flag.Bool("child", false, "with -serve: stop at the end of stdin, and not on an interrupt")
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
	case flag.NArg() > 0 || o.nodes < 1 || o.nodes > 9 || o.clients < 1 || o.clients > 100 || o.every < 0 || o.down < 0 || o.runFor < 0:
		err = errors.New("-nodes must be 1 to 9, -clients 1 to 100, and times at least 0; arguments after the flags are not allowed")
	case *serve != "":
		err = serveNode(ctx, os.Stdout, *serve, o.alone)
	default:
		err = demonstrate(ctx, newScreen(os.Stdout), o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bank:", err)
		os.Exit(1)
	}
}
