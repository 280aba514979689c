package wal_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// openFiles returns the files of a directory that this process has open.
func openFiles(t *testing.T, dir string) (list []string) {
	t.Helper()
	for _, link := range files(t, "/proc/self/fd", "*") {
		if path, err := os.Readlink(link); err == nil && strings.HasPrefix(path, dir+"/") {
			list = append(list, path)
		}
	}
	return list
}

// TestFilesAreClosed: a log that is closed, refused, verified or printed leaves no file open.
func TestFilesAreClosed(t *testing.T) {
	etcdwal.SegmentSizeBytes = childSegmentBytes
	t.Cleanup(func() { etcdwal.SegmentSizeBytes = segmentBytes })
	dir := filepath.Join(memdir.Quick(t), "log")
	none := func(what string) {
		t.Helper()
		if left := openFiles(t, dir); len(left) > 0 {
			t.Errorf("%s leaves open: %q", what, left)
		}
	}
	read := func(r *wal.SnapshotReader, err error) {
		t.Helper()
		must(t, err)
		_, err = io.Copy(io.Discard, r)
		must(t, errors.Join(err, r.Close()))
	}
	l, _ := open(t, dir, wal.Options{})
	for i := range uint64(3) {
		must(t, l.Save(state(1, 1, i), []*raftpb.Entry{entry(i+1, 1, strings.Repeat("x", 2*childSegmentBytes))}, true))
	}
	must(t, l.SaveSnapshot(snapshot(1, 1, "a state")))
	must(t, commit(l, snapshot(2, 1, "")))
	read(l.OpenSnapshot(1))
	read(l.OpenSnapshot(2))
	for _, path := range openFiles(t, dir) {
		if strings.HasSuffix(path, ".snap") {
			t.Errorf("a snapshot that was read leaves open: %s", path)
		}
	}
	must(t, l.Close())
	none("Close")

	l, s := open(t, dir, wal.Options{})
	read(s.OpenBody())
	must(t, l.Close())
	none("Close after Open")
	_, err := wal.Verify(dir)
	must(t, err)
	none("Verify")
	_, err = wal.Dump(dir, func(wal.Record) error { return nil })
	must(t, err)
	none("Dump")

	for _, path := range files(t, dir, "wal", "*.wal") {
		b, err := os.ReadFile(path)
		must(t, err)
		b[len(b)/8] ^= 1
		must(t, os.WriteFile(path, b, 0o600))
	}
	if _, _, err := wal.Open(dir, own, wal.Options{}); !errors.Is(err, wal.ErrDamaged) {
		t.Errorf("Open of a damaged log: %v", err)
	}
	none("Open of a damaged log")
}
