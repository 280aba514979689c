//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/topogen/topogen/runtime/internal/filelock"
)

// TestShare: several readers share a file, and a writer excludes them, whether it locks the
// file as fileutil or as bbolt does.
func TestShare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() *os.File {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() }) // it may be closed already
		return f
	}
	share := func(f *os.File, want bool) {
		t.Helper()
		if got, err := filelock.Share(f); err != nil || got != want {
			t.Fatalf("shared: %v %v, want %v", got, err, want)
		}
	}
	a, b := open(), open()
	share(a, true)
	share(b, true)
	if _, err := fileutil.TryLockFile(path, os.O_RDWR, 0); !errors.Is(err, fileutil.ErrLocked) {
		t.Errorf("a writer beside readers: %v", err)
	}
	if err := syscall.Flock(int(open().Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("a writer with flock beside readers: %v", err)
	}
	filelock.Unlock(a)
	filelock.Unlock(b)

	locked, err := fileutil.TryLockFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	share(a, false)
	filelock.Unlock(locked.File)
	writer := open()
	if err := syscall.Flock(int(writer.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	share(a, false)
	share(b, false)
	filelock.Unlock(writer)
	share(a, true)
}
