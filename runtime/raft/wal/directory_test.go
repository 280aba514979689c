package wal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestRemovedDirectory: Save and Sync fail if the directory of the log was removed or moved,
// because the next start would not find the files.
func TestRemovedDirectory(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"removed": memdir.RemoveAll,
		"moved":   func(dir string) error { return os.Rename(dir, dir+".old") },
		"emptied": func(dir string) error {
			return errors.Join(memdir.RemoveAll(filepath.Join(dir, "wal")), os.Remove(filepath.Join(dir, "lock")))
		},
		"replaced": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.CopyFS(dir, os.DirFS(dir+".old")))
		},
	} {
		for _, mode := range []wal.Sync{wal.Always, wal.Interval} {
			t.Run(name, func(t *testing.T) {
				dir := filepath.Join(memdir.Quick(t), "log")
				l, _ := open(t, dir, wal.Options{Sync: mode, Interval: time.Hour})
				must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, "one")}, true))
				must(t, l.Sync())
				must(t, remove(dir))
				err := errors.Join(l.Save(nil, []*raftpb.Entry{entry(2, 1, "two")}, true), l.Sync())
				if err == nil || !errors.Is(err, wal.ErrFailed) || !strings.Contains(err.Error(), dir) {
					t.Errorf("%v", err)
				}
				_ = l.Close()
			})
		}
	}
}
