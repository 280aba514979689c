// Package allocated limits the memory that a test allocates.
//
//	allocated.Within(t, 64<<10+10*len(input), func() { _, err = decode(input) })
//
// A decoder of bytes from a socket or a disk must not allocate the announced size, only a
// small multiple of the bytes that have come.
package allocated

import (
	"runtime/metrics"
	"testing"
)

// Within calls f, and reports an error if the process allocates more bytes during the call. No other
// goroutine may allocate much at the same time. The figure can be too small by some kilobytes of
// small objects, because reading the exact one would stop the whole process.
func Within(t testing.TB, most int, f func()) {
	t.Helper()
	before := total()
	f()
	if got := total() - before; got > uint64(most) {
		t.Errorf("%d bytes were allocated, want at most %d", got, most)
	}
}

func total() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
