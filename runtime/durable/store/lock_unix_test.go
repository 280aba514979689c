//go:build unix

package store_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/topogen/topogen/runtime/durable/store"
)

// TestOpenBelowPipe: a path that leads through a named pipe is refused at once.
func TestOpenBelowPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(filepath.Join(pipe, "store"), store.Options{}); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("got %v, want ENOTDIR", err)
	}
}
