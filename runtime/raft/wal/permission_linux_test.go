package wal_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestWithoutPermission: what the system says, and of what, once.
func TestWithoutPermission(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		make func() error // what there is in dir/NAME
		want string       // behind dir
	}{
		"missing": {func() error { return nil }, "wal: cannot write in " + dir + ": permission denied"},
		"closed": {
			func() error { return os.Mkdir(filepath.Join(dir, "closed"), 0o500) },
			"wal: cannot write in " + filepath.Join(dir, "closed") + ": permission denied",
		},
		"locked": {
			func() error {
				if err := os.Mkdir(filepath.Join(dir, "locked"), 0o700); err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(dir, "locked", "lock"), nil, 0o600); err != nil {
					return err
				}
				if err := os.Chmod(filepath.Join(dir, "locked", "lock"), 0o666); err != nil {
					return err
				}
				return os.Chmod(filepath.Join(dir, "locked"), 0o555)
			},
			"wal: cannot write in " + filepath.Join(dir, "locked") + ": permission denied",
		},
	} {
		must(t, os.Chmod(dir, 0o700))
		must(t, c.make())
		must(t, os.Chmod(dir, 0o555))
		if err := openAsNobody(filepath.Join(dir, name)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	must(t, os.Chmod(dir, 0o700))
}

// openAsNobody opens a log without the rights that root has.
func openAsNobody(dir string) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and ends with this goroutine
		if os.Getuid() == 0 {
			if err := syscall.Setfsuid(65534); err != nil {
				done <- err
				return
			}
		}
		l, _, err := wal.Open(dir, own, wal.Options{})
		if err == nil {
			err = l.Close()
		}
		done <- err
	}()
	return <-done
}
