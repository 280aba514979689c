//go:build unix

package errtop

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// TestNamedPipe: a named pipe is an error at once, also where it took the place of
// the file after the keeper looked at it.
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
