// Package memdir gives tests folders in memory.
//
// A sync of a real disk takes milliseconds, so a test that opens many logs waits for the disk
// most of the time.
package memdir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// New returns an empty folder in memory, if the system has one, and a folder on a disk
// otherwise. Its path has no symbolic links. The folder is removed when the test ends.
func New(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "topogen-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the folder of the test: %v", err)
		}
	})
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Quick returns a folder in memory in a quick run, and a folder on a disk otherwise.
func Quick(t testing.TB) string {
	t.Helper()
	if speed.IsQuick(t) {
		return New(t)
	}
	return t.TempDir()
}
