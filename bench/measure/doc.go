// Package measure compares the times of contenders.
//
// Contenders take turns in rounds, and a ratio is the median of the ratios of the rounds.
// A disturbance of the computer that lasts longer than a round therefore affects both
// sides of a ratio. Absolute times are context, not claims.
package measure

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"syscall"
	"time"
)

// Median returns the median of v, which it sorts.
func Median(v []float64) float64 { return Percentile(v, 0.5) }

// Percentile returns percentile p (0 to 1) of v, which it sorts.
func Percentile(v []float64, p float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[min(len(v)-1, int(p*float64(len(v))))]
}

// CPU returns the processor time that this process has used.
func CPU() time.Duration {
	user, system := UserSystem()
	return user + system
}

// UserSystem returns the processor time that this process has used in its own code and in
// the kernel.
func UserSystem() (user, system time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // Getrusage of this process cannot fail
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}

// Heap returns the size of the live heap in bytes.
func Heap() uint64 {
	runtime.GC()
	runtime.GC() // the second collection frees memory held by finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Resident returns the memory that the Go runtime has from the system, in bytes.
func Resident() uint64 {
	m := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(m)
	return m[0].Value.Uint64() - m[1].Value.Uint64()
}
