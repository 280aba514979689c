//go:build unix

package store_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestModes: only the owner can read the files and the folder of a store, whatever the mask of the
// process. The mask belongs to the whole process: the test must not run beside others.
func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	parent := memdir.Quick(t)
	dir, to := filepath.Join(parent, "store"), filepath.Join(parent, "restored")
	s := open(t, dir, store.Options{})
	put(t, s, "key", "value")
	must(t, s.Close())
	_, _, err := store.Restore(file(dir), to, false)
	must(t, err)
	paths, err := filepath.Glob(filepath.Join(parent, "*", "*"))
	must(t, err)
	if len(paths) != 4 { // two locks and two stores
		t.Errorf("got %v", paths)
	}
	for _, path := range append(paths, dir, to) {
		info, err := os.Lstat(path)
		must(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
}
