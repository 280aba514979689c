package processtests_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/holds"
	"github.com/topogen/topogen/runtime/pool"
)

type holdsSender func(context.Context, holds.Job) error

func newHolds(t *testing.T, drain time.Duration) *holds.Topology {
	t.Helper()
	top, err := holds.New(holds.Processors{}, pool.Logger(slog.New(slog.DiscardHandler)), pool.DrainTimeout(drain))
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// runHolds sends messages with send and then runs the topology.
func runHolds(t *testing.T, send func(near, far holdsSender)) (*holds.Topology, error) {
	t.Helper()
	top := newHolds(t, time.Minute)
	send(top.Api().SendJobToNear, top.Api().SendJobToFar)
	top.Api().Close()
	return top, top.Run(t.Context())
}

// TestHoldsHeldJobsAreDone checks that held jobs are done in both kinds of instances, although the
// sender was closed before Run.
func TestHoldsHeldJobsAreDone(t *testing.T) {
	t.Parallel()
	const jobs = 20
	top, err := runHolds(t, func(near, far holdsSender) {
		for i := range jobs {
			if err := errors.Join(near(t.Context(), holds.Job{N: i, How: "tick"}), far(t.Context(), holds.Job{N: jobs + i, How: "tick"})); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
	seen := make(map[int]bool)
	for _, d := range top.Sink(0).Done {
		seen[d.N] = true
		if far := d.Process != os.Getpid(); far != (d.N >= jobs) || d.Attempt != 1 {
			t.Errorf("%+v", d)
		}
	}
	if len(seen) != 2*jobs || len(top.Sink(0).Done) != 2*jobs {
		t.Errorf("%d of %d jobs are done", len(seen), 2*jobs)
	}
}

// TestHoldsReleasedOnAGoroutine checks that a release between two calls is noticed, also in a
// process.
func TestHoldsReleasedOnAGoroutine(t *testing.T) {
	t.Parallel()
	began := time.Now()
	_, err := runHolds(t, func(near, far holdsSender) {
		if err := errors.Join(near(t.Context(), holds.Job{How: "goroutine"}), far(t.Context(), holds.Job{How: "goroutine"})); err != nil {
			t.Fatal(err)
		}
	})
	if took := time.Since(began); err != nil || took < holds.HoldTime {
		t.Errorf("after %v Run returns %v", took, err)
	}
}

// TestHoldsNeverReleased checks that a stop waits for held work for the drain timeout, and that
// the error names the processors.
func TestHoldsNeverReleased(t *testing.T) {
	t.Parallel()
	top := newHolds(t, 100*time.Millisecond)
	if err := errors.Join(top.Api().SendJobToNear(t.Context(), holds.Job{How: "never"}), top.Api().SendJobToFar(t.Context(), holds.Job{How: "never"})); err != nil {
		t.Fatal(err)
	}
	top.Api().Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- top.Run(ctx) }()
	for _, edge := range []holds.EdgeIndex{holds.EdgeApiNearJob, holds.EdgeApiFarJob, holds.EdgeEveryNear5ms, holds.EdgeEveryFar5ms} {
		for top.Tree().Edge(edge).Received() == 0 { // the first tick releases the hold of Init
			select {
			case err := <-ended:
				t.Fatalf("Run returns %v", err)
			case <-time.After(time.Millisecond):
			}
		}
	}
	cancel()
	err := <-ended
	if !errors.Is(err, pool.ErrDrainTimeout) {
		t.Fatal(err)
	}
	for _, name := range []string{"near", "far"} {
		if text := fmt.Sprintf("processor %q: 1 pieces of work held (topo.Hold)", name); !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %s: %v", text, err)
		}
	}
}

// TestHoldsAttempts checks that handlers can read the attempt, and that attempts are delayed.
func TestHoldsAttempts(t *testing.T) {
	t.Parallel()
	began := time.Now()
	top, err := runHolds(t, func(near, far holdsSender) {
		if err := errors.Join(near(t.Context(), holds.Job{N: 1, How: "retry"}), far(t.Context(), holds.Job{N: 2, How: "retry"})); err != nil {
			t.Fatal(err)
		}
	})
	if took := time.Since(began); err != nil || took < 60*time.Millisecond {
		t.Errorf("after %v Run returns %v", took, err)
	}
	if done := top.Sink(0).Done; len(done) != 2 || done[0].Attempt != 3 || done[1].Attempt != 3 {
		t.Errorf("%+v", done)
	}
}

// TestHoldsALateSend checks that a send after the handler makes Run fail; in a process it ends the
// process. Under -race the race detector may report it first.
func TestHoldsALateSend(t *testing.T) {
	t.Parallel()
	_, err := runHolds(t, func(near, _ holdsSender) {
		if err := near(t.Context(), holds.Job{How: "late"}); err != nil {
			t.Fatal(err)
		}
	})
	if !errors.Is(err, pool.ErrLateSend) {
		t.Errorf("Run returns %v", err)
	}
	var log bytes.Buffer
	top, err := holds.New(holds.Processors{}, pool.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Api().SendJobToFar(t.Context(), holds.Job{How: "late"}); err != nil {
		t.Fatal(err)
	}
	top.Api().Close()
	_ = top.Run(t.Context()) // nil if all work was done when the process ended
	if f := top.Snapshot().Processors[holds.ProcessorFar].Faults; f.HoldsLost == 0 || len(top.Sink(0).Done) != 0 || !strings.Contains(log.String(), pool.ErrLateSend.Error()) {
		t.Errorf("%+v, %+v, %s", f, top.Sink(0).Done, log.String())
	}
}

// TestHoldsAProcessThatEndsHoldsNothing checks that the held work of a process that ends is lost
// and counted, and that the next process handles the current message.
func TestHoldsAProcessThatEndsHoldsNothing(t *testing.T) {
	t.Parallel()
	top, err := runHolds(t, func(_, far holdsSender) {
		for _, how := range []string{"never", "never", "exit"} {
			if err := far(t.Context(), holds.Job{N: 7, How: how}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
	if done := top.Sink(0).Done; len(done) != 1 || done[0].N != 7 || done[0].Attempt != 2 {
		t.Errorf("%+v", done)
	}
	if f := top.Snapshot().Processors[holds.ProcessorFar].Faults; f.Restarts != 1 || f.HoldsLost < 2 {
		t.Errorf("%+v", f)
	}
}
