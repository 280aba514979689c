//go:build unix

package regular

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOpen checks that Open returns at once for every kind of file.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // the path of a socket must be short
	for _, err := range []error{
		os.WriteFile("file", []byte("text"), 0o600), os.Symlink("file", "link"), os.Mkdir("folder", 0o700),
		syscall.Mkfifo("pipe", 0o600), os.Symlink("pipe", "to-pipe"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()

	for _, name := range []string{"file", "link"} {
		f, info, err := Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(f); err != nil || string(b) != "text" || info.Size() != 4 {
			t.Errorf("%s: %q, %d bytes: %v", name, b, info.Size(), err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, kind := range map[string]string{
		"folder": "a directory", "pipe": "a named pipe", "to-pipe": "a named pipe", "socket": "a socket", os.DevNull: "a device",
	} {
		if _, _, err := Open(name); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Open("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestReplacedByAPipe checks that open does not block on a named pipe that replaced the
// file after the first check.
func TestReplacedByAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(pipe); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
}
