// Command batch books files of payments, one batch after the other, with a pause
// between them. See README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

//go:generate go run ../../cmd/topogen build

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "batch:", err)
		os.Exit(1)
	}
}

// run books the files of the folder in args until ctx ends. Without arguments it books
// three generated files and ends when no file is left.
func run(ctx context.Context, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	processors := Processors{}
	if len(args) > 0 {
		processors.Batch = batches(args[0], nil)
	} else {
		folder, err := os.MkdirTemp("", "batch-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		if err := fill(folder); err != nil {
			return err
		}
		processors.Batch = batches(folder, cancel)
	}
	topology, err := New(processors)
	if err != nil {
		return err
	}
	return topology.Run(ctx)
}

// fill writes some files, one of them invalid.
func fill(folder string) error {
	for name, text := range map[string]string{
		"1-monday.csv":    "ann,250\nbob,120\n",
		"2-tuesday.csv":   "ann,10\nbob,a lot\n",
		"3-wednesday.csv": "ann,300\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}
