// Command bank is a ledger on three machines, here three processes, that are killed
// one after the other while money is moved. See README.md.
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
	last    time.Duration // how long it lasts; 0: until an interrupt
	every   time.Duration // from a start to the next kill; 0: nobody is killed
	any     bool          // kill anybody, not the leader alone, at random times
	down    time.Duration // from a kill to the start
	clients int           // of each branch
	dir     string        // "": a temporary one
}

func main() {
	var o options
	flag.IntVar(&o.nodes, "nodes", 3, "processes of the bank, 1 to 9")
	flag.BoolVar(&o.alone, "alone", false, "one process with a log and without raft")
	flag.DurationVar(&o.last, "for", 0, "how long to run (default until an interrupt)")
	flag.DurationVar(&o.every, "kill", 3*time.Second, "time from a start to the next kill of a leader; 0: none is killed")
	flag.BoolVar(&o.any, "any", false, "kill any node, leader or not, at random times around that of -kill")
	flag.DurationVar(&o.down, "down", time.Second, "time from a kill to the next start")
	flag.IntVar(&o.clients, "clients", 4, "clients of each of the eight branches")
	flag.StringVar(&o.dir, "dir", "", "folder of logs (default a temporary one)")
	serve := flag.String("serve", "", "be one of the processes, and serve at this address; TOPOGEN_NODE says which")
	child := flag.Bool("child", false, "with -serve: end when stdin ends, and not by an interrupt")
	flag.Parse()

	ctx := context.Background()
	if *child {
		signal.Ignore(os.Interrupt) // meant for the parent, which tells its children
		ctx = untilParentEnds(ctx, os.Stdin)
	} else {
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		// A second interrupt ends the program at once; but timeout(1) and some shells
		// send the first twice.
		context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	}
	var err error
	switch {
	case flag.NArg() > 0 || o.nodes < 1 || o.nodes > 9 || o.clients < 1 || o.clients > 100 || o.every < 0 || o.down < 0 || o.last < 0:
		err = errors.New("1 to 9 nodes, 1 to 100 clients, no time below 0, and nothing behind the flags")
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
