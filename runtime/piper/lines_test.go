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
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the layout is for 64-bit platforms")
	}
	var l LinkOf[queue.Edge[int64]]
	for name, offset := range map[string]uintptr{
		"the receiver's fields of a Link": unsafe.Offsetof(l.Link.nextIn),
		"the sender's fields of a Link":   unsafe.Offsetof(l.Link.nextDirty),
		"the queue":                       unsafe.Offsetof(l.Queue),
	} {
		if offset%lineBytes != 0 {
			t.Errorf("%s are at byte %d: want a multiple of %d", name, offset, lineBytes)
		}
	}
	if size := unsafe.Sizeof(l); size > 512 {
		t.Errorf("a link of one queue takes %d bytes: want at most 512", size)
	}
}

// TestCacheLinesOfAWorker checks that the fields of a worker that other goroutines write share no cache
// line with those of the owner or with another worker, wherever the allocator puts the worker.
func TestCacheLinesOfAWorker(t *testing.T) {
	var w Worker
	if gap := unsafe.Offsetof(w.inbox); gap < lineBytes {
		t.Errorf("the inbox is %d bytes behind the preceding object", gap)
	}
	if gap := unsafe.Offsetof(w.pool) - (unsafe.Offsetof(w.wake) + unsafe.Sizeof(w.wake)); gap < lineBytes {
		t.Errorf("%d bytes are between the fields that other goroutines write and those of the owner", gap)
	}
	var p Pool
	for name, offset := range map[string]uintptr{
		"ended": unsafe.Offsetof(p.ended), "threads": unsafe.Offsetof(p.threads), "idle": unsafe.Offsetof(p.idle), "workers": unsafe.Offsetof(p.workers),
	} {
		if at := unsafe.Offsetof(p.spinning); at < offset+lineBytes {
			t.Errorf("field %s, which is read in each turn, is at byte %d, and a field that workers write is at byte %d", name, offset, at)
		}
	}
	for name, s := range map[string]workerSet{"idle": newWorkerSet(1), "long": newWorkerSet(65)} {
		if at := uintptr(unsafe.Pointer(&s.words[0])); at%lineBytes != 0 || cap(s.words)%lineWords != 0 {
			t.Errorf("set %s is at byte %d of a cache line and takes %d words", name, at%lineBytes, cap(s.words))
		}
	}
}
