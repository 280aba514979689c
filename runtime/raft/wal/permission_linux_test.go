package wal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/topogen/topogen/internal/test/ordinary"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestWithoutPermission: the error contains the path and the system's error once each.
func TestWithoutPermission(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { // so that the files can be removed
		must(t, os.Chmod(dir, 0o700))
		_ = os.Chmod(filepath.Join(dir, "locked"), 0o700) // it does not exist if the test stops early
	})
	for name, c := range map[string]struct {
		make func() error // creates dir/NAME
		want string
	}{
		"missing": {func() error { return nil }, "wal: cannot write in " + dir + ": permission denied"},
		"closed": {
			func() error { return os.Mkdir(filepath.Join(dir, "closed"), 0o500) },
			"wal: cannot write in " + filepath.Join(dir, "closed") + ": permission denied",
		},
		"locked": {
			func() error {
				locked := filepath.Join(dir, "locked")
				lock := filepath.Join(locked, "lock")
				return errors.Join(os.Mkdir(locked, 0o700), os.WriteFile(lock, nil, 0o600), os.Chmod(lock, 0o666), os.Chmod(locked, 0o555))
			},
			"wal: cannot write in " + filepath.Join(dir, "locked") + ": permission denied",
		},
	} {
		must(t, os.Chmod(dir, 0o700))
		must(t, c.make())
		must(t, os.Chmod(dir, 0o555))
		ordinary.Run(t, func() {
			if err := openAndClose(filepath.Join(dir, name)); err == nil || err.Error() != c.want {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		})
	}
}

// TestAFolderThatCannotBeRead: a process that may create files in a directory but not read it
// can open a log there.
func TestAFolderThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o300))
	t.Cleanup(func() { must(t, os.Chmod(dir, 0o700)) }) // so that the files can be removed
	ordinary.Run(t, func() {
		if _, err := os.ReadDir(dir); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("the directory can be read: %v", err)
		}
		must(t, openAndClose(filepath.Join(dir, "log")))
	})
}

func openAndClose(dir string) error {
	l, _, err := wal.Open(dir, own, wal.Options{})
	if err == nil {
		err = l.Close()
	}
	return err
}
