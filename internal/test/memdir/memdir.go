// Package memdir gives tests folders in memory.
//
// A sync of a real disk takes milliseconds, so a test that opens many logs waits for the disk
// most of the time.
package memdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// New returns an empty folder in memory if the system has a file system in memory with enough
// space, and a folder on a disk otherwise. Its path has no symbolic links. The folder is removed
// when the test ends.
func New(t testing.TB) string {
	t.Helper()
	if memory, ok := inMemory(); ok {
		if dir, err := os.MkdirTemp(memory, "topogen-"); err == nil {
			return prepare(t, dir)
		}
	}
	return prepare(t, t.TempDir())
}

// Quick returns a folder like New in a quick run, and a folder on a disk otherwise.
func Quick(t testing.TB) string {
	t.Helper()
	if speed.IsQuick(t) {
		return New(t)
	}
	return prepare(t, t.TempDir())
}

// prepare removes a folder when the test ends, and returns its path without symbolic links.
func prepare(t testing.TB, dir string) string {
	t.Helper()
	t.Cleanup(func() {
		if err := RemoveAll(dir); err != nil {
			t.Errorf("remove the folder of the test: %v", err)
		}
	})
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

// RemoveAll removes a folder, also if another goroutine creates a file in it during the removal:
// the engine of a log creates its next file in advance.
func RemoveAll(dir string) error {
	err := os.RemoveAll(dir)
	for errors.Is(err, fs.ErrExist) { // the folder is not empty
		err = os.RemoveAll(dir)
	}
	return err
}
