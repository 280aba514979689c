//go:build unix

package errtop

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// TestNamedPipe: a named pipe is an error and does not block, even if it replaces the
// file after the keeper has checked it.
func TestNamedPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "errors.pb")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(pipe); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
	if _, err := (osDisk{}).Open(pipe); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
}
