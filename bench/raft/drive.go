package raft

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/topogen/topogen/bench/measure"
)

// Sample is what a group did in a while.
type Sample struct {
	Rate   float64 // commands a second
	Allocs float64 // a command, of all three replicas
	CPU    float64 // nanoseconds a command, likewise
}

// Drive has callers propose n commands.
func Drive(g Group, callers, n int) error {
	var taken atomic.Int64
	_, err := drive(g, callers, func() bool { return taken.Add(1) <= int64(n) })
	return err
}

// DriveFor has callers propose for a while.
func DriveFor(g Group, callers int, d time.Duration) (Sample, error) {
	var over atomic.Bool
	var before, after runtime.MemStats
	runtime.GC() // what others left behind is not this one's to collect
	runtime.ReadMemStats(&before)
	cpu, began := measure.CPU(), time.Now()
	time.AfterFunc(d, func() { over.Store(true) })
	n, err := drive(g, callers, func() bool { return !over.Load() })
	took, used := time.Since(began), measure.CPU()-cpu
	runtime.ReadMemStats(&after)
	per := float64(max(n, 1))
	return Sample{per / took.Seconds(), float64(after.Mallocs-before.Mallocs) / per, float64(used) / per}, err
}

// drive has callers propose as long as there is more, and returns how often they
// did.
func drive(g Group, callers int, more func() bool) (n int64, err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute+patience, errors.New("the group hangs"))
	defer cancel()
	var all sync.WaitGroup
	var total atomic.Int64
	failed := make(chan error, callers)
	for caller := range callers {
		all.Go(func() {
			done := int64(0)
			defer func() { total.Add(done) }()
			ctx, cancel := context.WithCancel(ctx) // of its own, as requests have
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

// SyncRate is how often a second the disk below a folder makes 4 KiB durable, one
// after the other, in a file that has its size already.
func SyncRate(dir string, d time.Duration) (rate float64, err error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	const blocks = 1024
	block := make([]byte, 4096)
	for range blocks {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	began, n := time.Now(), 0
	for ; time.Since(began) < d; n++ {
		if _, err := f.WriteAt(block, int64(n%blocks*len(block))); err != nil {
			return 0, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
