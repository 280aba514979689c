//go:build unix

package wal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestNamedPipes: a named pipe in place of a file of the log is an error at once.
// Opening it would block until another process opens its other end.
func TestNamedPipes(t *testing.T) {
	for _, pattern := range []string{"wal/*.wal", "snap/*.snap"} {
		t.Run(filepath.Dir(pattern), func(t *testing.T) {
			d := smallLog(t)
			all := files(t, d.dir, filepath.Dir(pattern), filepath.Base(pattern))
			name := all[len(all)-1]
			must(t, os.Remove(name))
			must(t, syscall.Mkfifo(name, 0o600))
			_, verifyErr := wal.Verify(d.dir)
			_, _, openErr := wal.Open(d.dir, own, wal.Options{})
			for _, err := range []error{verifyErr, openErr} {
				damage, is := errors.AsType[*wal.DamageError](err)
				if !is || damage.File != name || !strings.Contains(damage.Reason, "it is a named pipe") {
					t.Error(err)
				}
			}
		})
	}
}

// TestLockIsNoFile: the lock is opened for writing, which may block or have an
// effect on anything but a file.
func TestLockIsNoFile(t *testing.T) {
	d := smallLog(t)
	lock := filepath.Join(d.dir, "lock")
	must(t, os.Remove(lock))
	must(t, syscall.Mkfifo(lock, 0o600))
	if _, _, err := wal.Open(d.dir, own, wal.Options{}); err == nil || !strings.Contains(err.Error(), lock+": it is a named pipe") {
		t.Error(err)
	}
}

// TestPipeInPlaceOfTheLog: nor does the path of the log have to be a directory.
func TestPipeInPlaceOfTheLog(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	if _, err := wal.Verify(pipe); !errors.Is(err, syscall.ENOTDIR) {
		t.Error(err)
	}
	if found := wal.Find(pipe); found != nil {
		t.Error(found)
	}
}

// sparseBytes is what takes minutes to read, and no space on the disk.
const sparseBytes = 100 << 30

// TestSparseFiles: a file that says it is far larger than it may be is not read to
// its end. The error names the file, its size and the limit.
func TestSparseFiles(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		size          int64 // of what is left of the file before it grows
		want          string
	}{
		{"behind the records", "wal/*.wal", -1, fmt.Sprintf("the file has %d bytes", int64(sparseBytes))},
		{"nothing else", "wal/*.wal", 0, fmt.Sprintf("the file has %d bytes", int64(sparseBytes))},
		{"a snapshot", "snap/*.snap", -1, fmt.Sprintf("it has %d bytes", int64(sparseBytes))},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := smallLog(t)
			all := files(t, d.dir, filepath.Dir(c.pattern), filepath.Base(c.pattern))
			name := all[len(all)-1]
			if c.size >= 0 {
				must(t, os.Truncate(name, c.size))
			}
			must(t, os.Truncate(name, sparseBytes))
			_, verifyErr := wal.Verify(d.dir)
			_, _, openErr := wal.Open(d.dir, own, wal.Options{})
			_, _, headlessErr := wal.Open(d.dir, own, wal.Options{Sync: wal.None})
			for _, err := range []error{verifyErr, openErr, headlessErr} {
				damage, is := errors.AsType[*wal.DamageError](err)
				if !is || damage.File != name || !strings.Contains(damage.Reason, c.want) || !strings.Contains(damage.Reason, "at most") {
					t.Error(err)
				}
			}
		})
	}
}

// TestSparseSnapshot: a snapshot's file of a size that may be, and which is a hole
// but for its head, is not read into memory.
func TestSparseSnapshot(t *testing.T) {
	d := smallLog(t)
	name := files(t, d.dir, "snap", "*.snap")[0]
	must(t, os.Truncate(name, 1<<31-1))
	var before, after uint64
	before = allocated()
	_, err := wal.Verify(d.dir)
	after = allocated()
	damage, is := errors.AsType[*wal.DamageError](err)
	if !is || damage.File != name || !strings.Contains(damage.Reason, "its head is not one of a snapshot of 2147483647 bytes") {
		t.Error(err)
	}
	if got := after - before; got > 64<<20 {
		t.Errorf("%d bytes were allocated", got)
	}
}
