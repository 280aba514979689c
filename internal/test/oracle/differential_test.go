package oracle

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestDifferential carries out random sequences of requests, timeouts, clocks and crashes
// on the core and on the oracle. After each step, responses, messages and stored state
// must be the same, and the invariants hold.
func TestDifferential(t *testing.T) {
	speed.NoRace(t)
	first, end := speed.Seeds(t, 40, 250, 10_000)
	seed := atomic.Uint64{}
	seed.Store(first)
	var failed atomic.Bool
	c := newCoverage()
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for !failed.Load() {
				n := seed.Add(1) - 1
				if n >= end {
					return
				}
				s := generate(n, false)
				if compare(s, c) != nil && failed.CompareAndSwap(false, true) {
					small, d := shrink(s)
					t.Errorf("seed %d:\n%s\n%s", n, transcript(small, d), speed.Repeat(t, n))
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d seeds from %d on\n%s", end-first, first, c)
	// Some outcomes occur once in 200 seeds.
	if missing := c.missing(); len(missing) > 0 && end-first >= 10_000 && !failed.Load() {
		t.Errorf("no response had these outcomes: %q", missing)
	}
}
