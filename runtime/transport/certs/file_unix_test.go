//go:build unix

package certs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/runtime/transport/certs"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(path("n1.crt"), []byte("pem"), 0o600),
		os.WriteFile(path("sparse"), nil, 0o600), os.Truncate(path("sparse"), 100<<30),
		syscall.Mkfifo(path("pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if b, err := certs.ReadFile(path("n1.crt")); err != nil || string(b) != "pem" {
		t.Errorf("%q, %v", b, err)
	}
	for name, want := range map[string]string{
		"sparse": "has more than 1048576 bytes",
		"pipe":   "cannot read " + path("pipe") + ": it is a named pipe, not a regular file",
	} {
		if _, err := certs.ReadFile(path(name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := certs.ReadFile(path("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
