package piper

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/topogen/topogen/runtime/queue"
)

// A writer is who writes a field while messages are passed. Several processors may read the field.
type writer string

const (
	fixed    writer = "nobody" // written before the first message, or seldom, and read by several goroutines
	worker   writer = "the worker"
	others   writer = "other goroutines"
	receiver writer = "the receiver"
	sender   writer = "the sender"
	// rare is a field whose further writers are explained in the table. It may share a line with any other.
	rare writer = "several, but rarely"
)

// writers has the fields of a type, by their paths or by their last names. An entry for a struct is for all of
// its fields.
type writers map[string]writer

var workerWriters = writers{
	"top": others, // of the inbox
	// The worker reads these with the inbox in each turn. A push costs it one cache miss for all of them.
	"yield": others, "slow": others, "wake": others,
	"parked": rare, // the worker writes it when it parks, and then has nothing to do

	"pool": worker, "index": worker, // written once, by newWorker; other goroutines read index when an instance moves
	"state": worker, "sharing": worker, "batch": worker, "stepped": worker, "runq": worker,
	"idleLinks": worker, "wokeAnother": worker, "runner": worker, "lender": worker, "spareRunner": worker, "sinceYield": worker,
	"fromOutside": worker, "yields": worker, "sampler": worker,

	"measuring": worker, "variance": worker, "epoch": worker,
	"costs.note": rare, "posted": rare, // the rebalancer writes them for each of its decisions

	"timers.worker": worker, "heap": worker, "timer": worker, "armedAt": worker,
	"timers.note": rare, "firing": rare, // the Go timer writes them when it fires, for all timers of the worker

	"solo.worker": worker, "solo.unit": worker, "hung": worker, "slowTurns": worker, "exited": worker,
	"suspect": rare, "seen": rare, // the monitor writes them in each of its periods, for a worker outside the pool
}

var linkWriters = writers{
	"inlet": fixed, "out": fixed, "to": fixed, "gate": fixed, "heads": fixed,

	"nextIn": receiver, "nextReady": receiver, "listed": receiver, "Link.local": receiver, "idleIn": receiver, "edge": receiver, "hops": receiver,
	"wantRoom": rare, "roomNote": rare, // the sender takes them back after a queue was full
	"asked": rare, "gone": rare, // for links that stay empty

	"nextDirty": sender, "number": sender, "bound": sender, "dirty": sender, "inCycle": sender, "entering": sender, "ordered": sender, "table": sender,
	"posted": sender, "readyNote": sender, // the receiver resets them once for each turn

	"pos": sender, "limit": sender, "nextLimit": sender, "base": sender, "takenSeen": sender, "listener": sender, "Head.list": sender, "end": sender,
	"capacity": sender, "room": sender, "full": sender, "awaiting": sender, "touched": sender, "Head.index": sender, "Head.next": sender, "published": sender,
	"get": receiver, "taken": receiver, "at": receiver, "Head.local": receiver, "left": receiver, "pending": receiver,
	"waiting": rare,                  // the sender sets it when the queue is full
	"refused": rare, "evicted": rare, // the sender counts messages that a full queue drops

	"Queue.buf": sender, "list.buf": sender, "last": sender, "messages": sender,
	"list.first": rare, // the receiver writes it when the link is released
	"in":         receiver, "seg": receiver, "firstAt": receiver,
	"shared": rare, "own": rare, // of the spare segments, for each segment
}

// field is a field of a struct, or of a struct within it.
type field struct {
	path       string
	begin, end uintptr // bytes
	by         writer
}

// of returns the fields of t, which begins at the given byte. It reports fields that the table has not.
func (w writers) of(t *testing.T, typ reflect.Type, path string, begin uintptr, used map[string]bool) (fields []field) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		at := begin + f.Offset
		if f.Name == "_" || f.Type.Size() == 0 {
			continue
		}
		name := path + f.Name
		key := f.Name
		if parent := strings.Split(name, "."); len(parent) > 1 {
			if longer := strings.Join(parent[len(parent)-2:], "."); w[longer] != "" {
				key = longer
			}
		}
		switch by := w[key]; {
		case by != "":
			used[key] = true
			fields = append(fields, field{name, at, at + f.Type.Size(), by})
		case f.Type.Kind() == reflect.Struct && strings.Contains(f.Type.PkgPath(), "topogen/runtime/"):
			fields = append(fields, w.of(t, f.Type, name+".", at, used)...)
		default:
			t.Errorf("field %s has no writer in the table of this test: add who writes it while messages are passed", name)
		}
	}
	return fields
}

// check reports fields of typ with different writers that share a cache line. A value of typ begins at a cache
// line if aligned is set, else anywhere.
func (w writers) check(t *testing.T, typ reflect.Type, aligned bool) {
	t.Helper()
	used := map[string]bool{}
	fields := w.of(t, typ, "", 0, used)
	for name := range w {
		if !used[name] {
			t.Errorf("%v has no field %s: remove it from the table of this test", typ, name)
		}
	}
	for i, a := range fields {
		for _, b := range fields[i+1:] {
			shares := b.begin < a.end-1+lineBytes
			if aligned {
				shares = b.begin/lineBytes <= (a.end-1)/lineBytes
			}
			if shares && a.by != b.by && a.by != rare && b.by != rare {
				t.Errorf("%s (written by %s) and %s (written by %s) may be in one cache line", a.path, a.by, b.path, b.by)
			}
		}
	}
}

// TestWritersShareNoCacheLine checks that two goroutines that pass messages to each other write different cache
// lines of a worker, and of a link with its queue. The allocator puts a worker anywhere, but the 512 bytes of a link at
// a cache line. Another worker may precede a worker.
func TestWritersShareNoCacheLine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the layout is for 64-bit platforms")
	}
	workerWriters.check(t, reflect.TypeFor[Worker](), false)
	if gap := unsafe.Offsetof(Worker{}.inbox); gap < lineBytes {
		t.Errorf("the inbox is %d bytes behind the preceding object", gap)
	}
	link := reflect.TypeFor[LinkOf[queue.Edge[int64]]]()
	linkWriters.check(t, link, true)
	if link.Size() > 512 {
		t.Errorf("a link of one queue takes %d bytes: want at most 512", link.Size())
	}
}

// TestCacheLinesOfAPool checks that what workers read in each turn is apart from what they write, and that the sets of
// workers share no cache line with anything.
func TestCacheLinesOfAPool(t *testing.T) {
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
