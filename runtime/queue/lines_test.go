package queue

import (
	"testing"
	"unsafe"
)

// TestCacheLinesOfAnEdge checks that the fields that the producer writes for each
// message are in other cache lines than the consumer's, provided that the queue starts
// at a cache line.
func TestCacheLinesOfAnEdge(t *testing.T) {
	const line = 64
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the layout is for 64-bit platforms")
	}
	var e Edge[int64]
	for name, offset := range map[string]uintptr{
		"the consumer's fields of the head": unsafe.Offsetof(e.Head.get),
		"the producer's of the queue":       unsafe.Offsetof(e.buf),
		"the consumer's of the queue":       unsafe.Offsetof(e.list) + unsafe.Offsetof(e.list.in),
	} {
		if offset%line != 0 {
			t.Errorf("%s are at byte %d: want a multiple of %d", name, offset, line)
		}
	}
}
