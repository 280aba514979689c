// Command wordcount prints the most frequent words of the files and folders on the
// command line. Without arguments it reads the Go module that contains the working
// directory. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go run ../../cmd/topogen build

func main() {
	// An interrupt ends the reading. The words that were read are counted and printed.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		folder, err := moduleFolder()
		if err != nil {
			return err
		}
		paths = []string{folder}
	}
	for _, path := range paths { // before any file is read
		if _, err := os.Stat(path); err != nil {
			return err
		}
	}
	topology, err := New(Processors{
		Feed: func(topo.Instance) (*Feed, error) { return &Feed{paths: paths}, nil },
	})
	if err != nil {
		return err
	}
	start := time.Now()
	hideStatus := showStatus(topology, start)
	err = topology.Run(ctx)
	hideStatus()
	if err != nil {
		return err
	}
	feed, took := topology.Feed(0), time.Since(start)
	fmt.Fprintf(os.Stderr, "%d files, %.1f MB in %v: %.0f MB/s\n",
		feed.Files, float64(feed.Bytes)/1e6, took.Round(time.Millisecond), float64(feed.Bytes)/1e6/took.Seconds())
	return nil
}

// moduleFolder returns the root of the Go module that contains the working directory. If
// there is no such module, it returns the root of the module of this program.
func moduleFolder() (string, error) {
	working, err := os.Getwd()
	if err != nil {
		return "", err
	}
	_, source, _, _ := runtime.Caller(0)
	for _, folder := range []string{working, filepath.Dir(source)} {
		for filepath.IsAbs(folder) {
			if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
				return folder, nil
			} else if !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
			if folder == filepath.Dir(folder) {
				break
			}
			folder = filepath.Dir(folder)
		}
	}
	return "", errors.New("no Go module found; name files or folders")
}
