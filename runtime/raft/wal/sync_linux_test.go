package wal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/failsync"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// syncTest is a call of a log, and the files that it must sync, in the notation of
// [failsync.Check].
type syncTest struct {
	prepare       func(l *logFiles)
	call          func(l *logFiles) error
	always, other string // files in mode Always, and in the modes Interval and None
}

// logFiles is a log in a test of its syncs.
type logFiles struct {
	t    *testing.T
	dir  string
	mode wal.Sync
	log  wal.Log
	next uint64 // index of the next entry
}

func (l *logFiles) open() (err error) {
	l.log, _, err = wal.Open(l.dir, own, wal.Options{Sync: l.mode, Interval: time.Hour})
	return err
}

func (l *logFiles) save(size int) error {
	e := entry(l.next, 1, strings.Repeat("x", size))
	l.next++
	return l.log.Save(state(1, 1, l.next-2), []*raftpb.Entry{e}, true)
}

// opened opens a log and saves an entry, because the first save of a process is synced in every
// mode.
func (l *logFiles) opened() {
	must(l.t, l.open())
	must(l.t, l.save(1))
}

// closed leaves a complete log.
func (l *logFiles) closed() {
	l.opened()
	must(l.t, l.log.Close())
}

// torn leaves a log whose last record is incomplete.
func (l *logFiles) torn() {
	l.opened()
	must(l.t, l.log.Sync())
	before := copied(l.t, l.dir)
	must(l.t, l.save(3000))
	after := copied(l.t, l.dir)
	must(l.t, l.log.Close())
	for name, b := range after {
		if strings.HasSuffix(name, ".wal") {
			from := used(before[name])
			clear(b[from+sector+sector-from%sector : from+2*sector+sector-from%sector])
		}
	}
	after.write(l.t, l.dir)
}

// truncated leaves a log whose process ended while it opened the log.
func (l *logFiles) truncated() {
	l.closed()
	all := files(l.t, l.dir, "wal", "*.wal")
	last := all[len(all)-1]
	b, err := os.ReadFile(last)
	must(l.t, err)
	must(l.t, os.Truncate(last, int64(used(b))))
	must(l.t, os.WriteFile(filepath.Join(l.dir, "lock"), wal.Note(filepath.Base(last), int64(used(b)), int64(len(b))), 0o600))
}

// snapshots leaves a log with two snapshots, so that another one makes the first obsolete.
func (l *logFiles) snapshots() {
	l.opened()
	for range 2 {
		must(l.t, l.save(1))
		must(l.t, l.log.SaveSnapshot(snapshot(l.next-1, 1, "a state")))
	}
	must(l.t, l.save(1))
}

// commit commits a body that is synced once before its end.
func (l *logFiles) commit() error {
	w, err := l.log.CreateSnapshot()
	if err != nil {
		return err
	}
	size := 17 << 20
	if speed.IsQuick(l.t) {
		size = 5 * wal.BodyChunk
		wal.SyncAfter(w, 3)
	}
	_, err = w.Write(make([]byte, size))
	return errors.Join(err, w.Commit(snapshot(l.next-1, 1, "")))
}

var syncTests = map[string]syncTest{
	"create": {prepare: func(*logFiles) {}, call: (*logFiles).open,
		always: ". log/wal.tmp/N.wal log log log/wal log/snap log/wal/N.wal",
		other:  ". log/wal.tmp/N.wal log log log/wal log/snap log/wal/N.wal log/wal/N.tmp"},
	"open": {prepare: (*logFiles).closed, call: (*logFiles).open,
		always: ". log/wal/N.wal log/lock log log/wal log/snap log/wal/N.wal log/lock",
		other:  ". log/wal/N.wal log/lock log log/wal log/snap log/wal/N.wal log/lock log/wal/N.tmp"},
	"open with a torn write": {prepare: (*logFiles).torn, call: (*logFiles).open,
		always: ". log/wal/N.wal log/wal/N.wal log/lock log log/wal log/snap log/wal/N.wal log/lock",
		other:  ". log/wal/N.wal log/wal/N.wal log/lock log log/wal log/snap log/wal/N.wal log/lock log/wal/N.tmp"},
	"open after truncation": {prepare: (*logFiles).truncated, call: (*logFiles).open,
		always: ". log/wal/N.wal log/wal/N.wal log/lock log log/wal log/snap log/wal/N.wal log/lock",
		other:  ". log/wal/N.wal log/wal/N.wal log/lock log log/wal log/snap log/wal/N.wal log/lock log/wal/N.tmp"},
	"first save": {prepare: func(l *logFiles) { must(l.t, l.open()) }, call: func(l *logFiles) error { return l.save(1) },
		always: "log/wal/N.wal log/wal/N.wal log/wal/N.wal", // before the mark, the mark, the entry
		other:  "log/wal/N.wal log/wal/N.wal log/wal/N.wal"},
	"save": {prepare: (*logFiles).opened, call: func(l *logFiles) error { return l.save(1) },
		always: "log/wal/N.wal"},
	"save a state": {prepare: (*logFiles).opened, call: func(l *logFiles) error { return l.log.Save(state(1, 1, 1), nil, true) },
		always: "log/wal/N.wal"},
	"save without a sync": {prepare: (*logFiles).opened, call: func(l *logFiles) error { return l.log.Save(state(1, 1, 1), nil, false) }},
	"new segment": {prepare: (*logFiles).opened, call: func(l *logFiles) error { return l.save(2 * childSegmentBytes) },
		always: "log/wal/N.wal log/wal/N.tmp log/wal", other: "log/wal log/wal/N.wal log/wal/N.tmp"},
	"snapshot": {prepare: (*logFiles).opened, call: func(l *logFiles) error { return l.log.SaveSnapshot(snapshot(1, 1, "a state")) },
		always: "log/snap/N.snap.tmp log/snap log/wal/N.wal log/wal/N.wal",
		other:  "log/snap/N.snap.tmp log/snap log/wal/N.wal"},
	"obsolete snapshot": {prepare: (*logFiles).snapshots, call: func(l *logFiles) error { return l.log.SaveSnapshot(snapshot(l.next-1, 1, "a state")) },
		always: "log/snap/N.snap.tmp log/snap log/wal/N.wal log/wal/N.wal log/snap?",
		other:  "log/snap/N.snap.tmp log/snap log/wal/N.wal log/snap?"},
	"snapshot with a body": {prepare: (*logFiles).opened, call: (*logFiles).commit,
		always: "log/snap/N.tmp log/snap/N.tmp log/snap log/wal/N.wal log/wal/N.wal",
		other:  "log/snap/N.tmp log/snap/N.tmp log/snap log/wal/N.wal"},
	"sync": {prepare: (*logFiles).opened, call: func(l *logFiles) error { return l.log.Sync() },
		always: "log/wal/N.wal", other: "log/wal/N.wal"},
	"background": {prepare: (*logFiles).opened, call: func(l *logFiles) error { wal.SyncInBackground(l.log); return l.log.Save(nil, nil, false) },
		other: "log/wal/N.wal"},
	"close": {prepare: (*logFiles).opened, call: func(l *logFiles) error { return l.log.Close() },
		always: "log/wal/N.wal log/wal/N.wal", other: "log/wal/N.wal"},
}

// TestSyncs: each call makes its files durable by system calls, also those of the engine. If one
// of them fails, the call returns the error.
func TestSyncs(t *testing.T) {
	etcdwal.SegmentSizeBytes = childSegmentBytes
	t.Cleanup(func() { etcdwal.SegmentSizeBytes = segmentBytes })
	for name, c := range syncTests {
		for _, mode := range []wal.Sync{wal.Always, wal.Interval, wal.None} {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				want := c.other
				if mode == wal.Always {
					want = c.always
				}
				failsync.Check(t, want, func(dir string) func() error {
					l := &logFiles{t: t, dir: filepath.Join(dir, "log"), mode: mode, next: 1}
					c.prepare(l)
					t.Cleanup(func() {
						if l.log != nil {
							_ = l.log.Close() // it may have failed
						}
					})
					return func() error { return c.call(l) }
				})
			})
		}
	}
}
