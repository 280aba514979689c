//go:build unix

package wal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestModes: only the owner can read the files and folders of a log, whatever the mask of the
// process. The mask belongs to the whole process: the test must not run beside others.
func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(memdir.Quick(t), "log")
	l, _ := open(t, dir, wal.Options{Sync: wal.None})
	must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, "one"), entry(2, 1, "two")}, true))
	must(t, l.SaveSnapshot(snapshot(1, 1, "a state")))
	w, err := l.CreateSnapshot()
	must(t, err)
	_, err = w.Write([]byte("a body"))
	must(t, err)
	must(t, w.Commit(snapshot(2, 1, "")))
	must(t, l.Close())
	l, _ = open(t, dir, wal.Options{})
	must(t, l.Close())
	seen := 0
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		seen++
		return err
	}))
	if seen < 7 { // three folders, the lock, a segment and two snapshots
		t.Errorf("%d files and folders", seen)
	}
}
