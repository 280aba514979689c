//go:build unix

package wal_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestNamedPipes: Open and Verify report a named pipe in place of a file of the log at
// once. To open the pipe would block until another process opens its other end.
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

// TestLockIsNotAFile: Open refuses a lock file that is not a regular file. It opens the lock
// for writing, which may block or have other effects on a special file.
func TestLockIsNotAFile(t *testing.T) {
	d := smallLog(t)
	lock := filepath.Join(d.dir, "lock")
	must(t, os.Remove(lock))
	must(t, syscall.Mkfifo(lock, 0o600))
	if _, _, err := wal.Open(d.dir, own, wal.Options{}); err == nil || !strings.Contains(err.Error(), lock+": it is a named pipe") {
		t.Error(err)
	}
}

// TestPipeInPlaceOfTheLog: the path of the log may be a named pipe, which must not block.
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

// sparseBytes is a size that takes minutes to read. A sparse file of this size takes no
// space on the disk.
const sparseBytes = 100 << 30

// TestSparseFiles: a file far above the size limit is not read to its end. The error names
// the file, its size and the limit.
func TestSparseFiles(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		size          int64 // truncate the file to this size before it is extended; -1: do not
		want          string
	}{
		{"behind the records", "wal/*.wal", -1, fmt.Sprintf("the file has %d bytes", int64(sparseBytes))},
		{"nothing else", "wal/*.wal", 0, fmt.Sprintf("the file has %d bytes", int64(sparseBytes))},
		{"a snapshot", "snap/*.snap", -1, fmt.Sprintf("got %d", int64(sparseBytes))},
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

// TestSparseSnapshot: a snapshot file below the size limit that is sparse after its head is
// not read into memory.
func TestSparseSnapshot(t *testing.T) {
	d := smallLog(t)
	name := files(t, d.dir, "snap", "*.snap")[0]
	must(t, os.Truncate(name, 1<<31-1))
	var before, after uint64
	before = totalAllocated()
	_, err := wal.Verify(d.dir)
	after = totalAllocated()
	damage, is := errors.AsType[*wal.DamageError](err)
	if !is || damage.File != name || !strings.Contains(damage.Reason, "the head does not match a snapshot of 2147483647 bytes") {
		t.Error(err)
	}
	if got := after - before; got > 64<<20 {
		t.Errorf("%d bytes were allocated", got)
	}
}

// TestSparseSnapshotWithHead: the file of a snapshot whose head matches its size, and whose data is
// missing, is not read into memory.
func TestSparseSnapshotWithHead(t *testing.T) {
	d := smallLog(t)
	name := files(t, d.dir, "snap", "*.snap")[0]
	const size = 256 << 20
	head := append([]byte{1 << 3, 1}, 2<<3|2) // the checksum 1, and the tag of the data
	head = binary.AppendUvarint(head, size)
	must(t, os.WriteFile(name, head, 0o600))
	must(t, os.Truncate(name, int64(len(head)+size)))
	allocated.Within(t, 64<<20, func() {
		_, err := wal.Verify(d.dir)
		damage, is := errors.AsType[*wal.DamageError](err)
		if !is || damage.File != name || damage.Offset != int64(len(head)) || !strings.Contains(damage.Reason, "the checksum must be 00000001") {
			t.Error(err)
		}
	})
}
