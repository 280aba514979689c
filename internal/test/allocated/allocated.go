// Package allocated limits the memory that a test allocates.
//
//	allocated.Within(t, 10*len(input), func() { _, err = decode(input) })
//
// A decoder of bytes from a socket or a disk must not allocate the announced size, only a
// small multiple of the bytes that have come.
package allocated

import (
	"runtime"
	"testing"
)

const (
	spare  = 4 << 10 // bytes more than the limit: an error with its text, and a goroutine of the Go runtime
	thread = 8 << 10 // the Go runtime allocates this many bytes at most when it starts a thread, which it does at any time
)

// Within calls f, and reports an error if the process allocates more bytes during the call. It
// allows 4 KiB more for an error. No other goroutine may allocate at the same time.
//
// The figure is exact, because the whole process is stopped to read it. The figures of
// runtime/metrics are not: they are off by up to a megabyte after a garbage collection.
func Within(t testing.TB, most int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	threads, _ := runtime.ThreadCreateProfile(nil)
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	started, _ := runtime.ThreadCreateProfile(nil)
	got, allowed := after.TotalAlloc-before.TotalAlloc, most+spare+thread*(started-threads)
	if got > uint64(allowed) {
		t.Errorf("%d bytes were allocated, want at most %d", got, most)
	}
}
