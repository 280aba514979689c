// Package work has the work of the benchmarks' handlers: arithmetic that takes a given
// time and that no compiler removes.
package work

import (
	"sync"
	"time"
)

// Sink is exported so that the compiler cannot prove that it is never read.
var Sink uint64

// Do takes the given number of steps, each of which depends on the one before.
//
//go:noinline
func Do(steps int) {
	x := uint64(steps)
	for range steps {
		x = x*2862933555777941757 + 3037000493
	}
	if x == 42 {
		Sink = x
	}
}

var nanosPerStep = sync.OnceValue(func() float64 {
	const steps, tries = 100_000, 20
	best := time.Hour
	for range tries {
		began := time.Now()
		Do(steps)
		best = min(best, time.Since(began)) // the run that was disturbed least
	}
	return float64(best) / steps
})

// Steps returns how many steps take d on this computer.
func Steps(d time.Duration) int {
	return int(float64(d) / nanosPerStep())
}
