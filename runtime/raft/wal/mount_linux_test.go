package wal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// mount mounts a file system in memory. It skips the test if the process is not allowed to.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	flags := uintptr(0)
	options, readOnly := strings.CutSuffix(options, ",ro")
	if readOnly {
		flags = syscall.MS_RDONLY
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Skipf("needs permission to mount: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// TestFullDisk: the error of a full disk is final, and the acknowledged entries stay.
func TestFullDisk(t *testing.T) {
	for _, mode := range []wal.Sync{wal.Always, wal.Interval, wal.None} {
		t.Run(mode.String(), func(t *testing.T) {
			dir := mount(t, "size=256k")
			l, _ := open(t, dir, wal.Options{Sync: mode})
			acknowledged := uint64(0)
			var failure error
			for failure == nil {
				e := entry(acknowledged+1, 1, dataOf(acknowledged+1))
				if failure = l.Save(state(1, 1, acknowledged), []*raftpb.Entry{e}, true); failure == nil {
					acknowledged++
				}
			}
			if !errors.Is(failure, wal.ErrFailed) || !errors.Is(failure, syscall.ENOSPC) || acknowledged < 50 {
				t.Errorf("after %d entries: %v", acknowledged, failure)
			}
			for _, err := range []error{l.Save(state(2, 1, 1), nil, false), l.SaveSnapshot(snapshot(1, 1, "")), l.Sync(), l.Close()} {
				if !errors.Is(err, wal.ErrFailed) {
					t.Errorf("calls after the error must fail, got: %v", err)
				}
			}
			must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=512k"))
			l, s := open(t, dir, wal.Options{Sync: mode})
			if uint64(len(s.Entries)) < acknowledged {
				t.Errorf("the log must have all %d acknowledged entries, got %d", acknowledged, len(s.Entries))
			}
			must(t, l.Save(nil, []*raftpb.Entry{entry(uint64(len(s.Entries))+1, 1, "more")}, true))
			must(t, l.Close())
		})
	}
}

// TestDiskIsFullWhileItOpens: the engine truncates the last segment to the end of its records,
// and the disk has no space to extend it again. Once the disk has space, the log opens.
func TestDiskIsFullWhileItOpens(t *testing.T) {
	dir := mount(t, "size=256k")
	l, _ := open(t, dir, wal.Options{})
	must(t, l.Save(state(1, 1, 0), []*raftpb.Entry{entry(1, 1, "one")}, true))
	must(t, l.Close())
	segment := files(t, dir, "wal", "*.wal")[0]
	must(t, os.Truncate(segment, 200<<10)) // sparse, so that it takes no space
	must(t, os.WriteFile(filepath.Join(dir, "other"), make([]byte, 150<<10), 0o600))
	if _, _, err := wal.Open(dir, own, wal.Options{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if info, err := os.Stat(segment); err != nil || info.Size() >= segmentBytes {
		t.Fatal(info.Size(), err)
	}
	_, err := wal.Verify(dir)
	must(t, err)
	must(t, os.Remove(filepath.Join(dir, "other")))
	l, s := open(t, dir, wal.Options{})
	if len(s.Entries) != 1 {
		t.Errorf("%+v", s)
	}
	must(t, l.Save(nil, []*raftpb.Entry{entry(2, 1, "two")}, true))
	must(t, l.Close())
}

func TestReadOnly(t *testing.T) {
	dir := mount(t, "size=1m,ro")
	if _, _, err := wal.Open(dir, own, wal.Options{}); err == nil || !strings.Contains(err.Error(), "read-only") || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
}
