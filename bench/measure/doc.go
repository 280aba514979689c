// Package measure times contenders against each other.
//
// Contenders take turns, round by round, and a ratio is the median of the rounds'
// ratios: what disturbs the machine for longer than a round touches both sides of
// it. Times by themselves are context, not claims.
package measure

import (
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Median of v, which it sorts.
func Median(v []float64) float64 { return Percentile(v, 0.5) }

// Percentile p (0 to 1) of v, which it sorts.
func Percentile(v []float64, p float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[min(len(v)-1, int(p*float64(len(v))))]
}

// CPU is the processor time that this process has taken.
func CPU() time.Duration {
	user, system := UserSystem()
	return user + system
}

// UserSystem is the processor time that this process has taken in its own code,
// and in the system's for it.
func UserSystem() (user, system time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no way to fail
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}

// Heap is the memory that is alive on the heap, in bytes.
func Heap() uint64 {
	runtime.GC()
	runtime.GC() // the second frees what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
