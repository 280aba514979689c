package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// freeBytesMax is how much memory a process takes that lives for a second
	// before it is worth its time to look for what can be used again.
	freeBytesMax = 220 << 20

	// liveBytesMax is how much of that may be in use. With more, Go's default collects
	// less often.
	liveBytesMax = freeBytesMax / 2

	percentOfGo = 100 // Go's default
)

// collectLate has the garbage collector wait until freeBytesMax are taken, and
// work as it always does where more than that is needed. What the environment
// says goes first.
func collectLate() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(freeBytesMax)
	afterCollection(func() (again bool) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if live[0].Value.Uint64() <= liveBytesMax {
			return true
		}
		debug.SetMemoryLimit(math.MaxInt64)
		debug.SetGCPercent(percentOfGo)
		return false
	})
}

// afterCollection calls do after each collection until it returns false.
func afterCollection(do func() bool) {
	unused := new([16]byte) // large enough to have a finalizer that runs
	runtime.SetFinalizer(unused, func(*[16]byte) {
		if do() {
			afterCollection(do)
		}
	})
}
