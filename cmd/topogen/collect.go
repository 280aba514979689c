package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// freeBytesMax is the heap size below which no garbage is collected. The process
	// lives for about a second, and most builds end below this size.
	freeBytesMax = 220 << 20

	// liveBytesMax is the most live memory for which this limit is kept. With more
	// live memory, Go's default collects less often.
	liveBytesMax = freeBytesMax / 2

	percentOfGo = 100 // Go's default
)

// collectLate delays garbage collection until the heap has freeBytesMax bytes. If more
// than liveBytesMax are live then, it restores Go's default. It does nothing if the
// environment has GOGC or GOMEMLIMIT.
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
