// Command sensor-fusion estimates where a robot is from sensors that crash, hang or stop
// sending. See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/topogen/topogen/runtime/pool"
)

//go:generate go run ../../cmd/topogen build

func main() {
	duration := flag.Duration("for", 12*time.Second, "how long to run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	ctx, cancel := context.WithTimeout(ctx, *duration)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "sensor-fusion:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	options := &slog.HandlerOptions{ReplaceAttr: firstLine}
	topology, err := New(Processors{}, pool.Logger(slog.New(slog.NewTextHandler(stdout.log(), options))))
	if err != nil {
		return err
	}
	err = topology.Run(ctx)
	stdout.Rewrite("")
	summarize(os.Stdout, topology)
	return err
}

// firstLine shortens errors in the log, because panics have a stack.
func firstLine(_ []string, a slog.Attr) slog.Attr {
	text, _, _ := strings.Cut(a.Value.String(), "\n")
	if a.Key == "error" {
		a.Value = slog.StringValue(text)
	}
	return a
}

// summarize prints the restarts, the silent inputs and the errors of the estimate.
func summarize(out io.Writer, t *Topology) {
	snapshot := t.Snapshot()
	for _, p := range []ProcessorIndex{ProcessorCamera, ProcessorLidar, ProcessorImu, ProcessorGps} {
		f := snapshot.Processors[p].Faults
		fmt.Fprintf(out, "%-7s restarts %d, killed for hanging %d\n", p, f.Restarts, f.HealthCheckKills)
	}
	f := snapshot.Faults
	fmt.Fprintf(out, "inputs  became silent %d, recovered %d\n", f.InputTimeouts, f.CircuitBreakerRecoveries)
	for mode, off := range t.Status(0).errors {
		fmt.Fprintf(out, "mean error while %-10s %v\n", Mode(mode).String()+":", off)
	}
}
