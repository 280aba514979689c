package piper

import (
	"testing"
	"unsafe"

	"github.com/topogen/topogen/runtime/queue"
)

// TestCacheLinesOfALink checks the layout of a link and its queue. They have 504 bytes,
// for which the allocator returns 512 bytes that start at a cache line. The fields that
// the sender writes for each message must be in other cache lines than the fields of
// the receiver.
func TestCacheLinesOfALink(t *testing.T) {
	const line = 64
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the layout is for 64-bit platforms")
	}
	var l LinkOf[queue.Edge[int64]]
	for name, offset := range map[string]uintptr{
		"the receiver's fields of a Link": unsafe.Offsetof(l.Link.nextIn),
		"the sender's fields of a Link":   unsafe.Offsetof(l.Link.nextDirty),
		"the queue":                       unsafe.Offsetof(l.Queue),
	} {
		if offset%line != 0 {
			t.Errorf("%s are at byte %d: want a multiple of %d", name, offset, line)
		}
	}
	if size := unsafe.Sizeof(l); size > 512 {
		t.Errorf("a link of one queue takes %d bytes: want at most 512", size)
	}
}
