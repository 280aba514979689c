package raft

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/bench/measure"
)

// Sample is the result of one run of a group.
type Sample struct {
	Rate   float64 // commands per second
	Allocs float64 // per command, of all three replicas
	CPU    float64 // nanoseconds per command, of all three replicas
}

// Drive lets callers propose n commands.
func Drive(g Group, callers, n int) error {
	var taken atomic.Int64
	_, err := drive(g, callers, func() bool { return taken.Add(1) <= int64(n) })
	return err
}

// DriveFor lets callers propose for a time.
func DriveFor(g Group, callers int, d time.Duration) (Sample, error) {
	var over atomic.Bool
	var before, after runtime.MemStats
	runtime.GC() // so that this run does not collect the garbage of others
	runtime.ReadMemStats(&before)
	cpu, began := measure.CPU(), time.Now()
	time.AfterFunc(d, func() { over.Store(true) })
	n, err := drive(g, callers, func() bool { return !over.Load() })
	took, used := time.Since(began), measure.CPU()-cpu
	runtime.ReadMemStats(&after)
	per := float64(max(n, 1))
	return Sample{per / took.Seconds(), float64(after.Mallocs-before.Mallocs) / per, float64(used) / per}, err
}

// drive lets callers propose as long as more returns true, and returns the number of
// proposals.
func drive(g Group, callers int, more func() bool) (n int64, err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute+patience, errors.New("the group does not answer"))
	defer cancel()
	var all sync.WaitGroup
	var total atomic.Int64
	failed := make(chan error, callers)
	for caller := range callers {
		all.Go(func() {
			done := int64(0)
			defer func() { total.Add(done) }()
			ctx, cancel := context.WithCancel(ctx) // its own, like a request's
			defer cancel()
			for more() {
				if err := g.Propose(ctx, caller); err != nil {
					failed <- fmt.Errorf("a proposal: %w", err)
					return
				}
				done++
			}
		})
	}
	all.Wait()
	select {
	case err = <-failed:
	default:
	}
	return total.Load(), err
}
