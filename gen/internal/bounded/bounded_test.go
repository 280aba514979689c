package bounded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(name, 4); string(text) != "four" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := ReadFile(name, 3); text != nil || err == nil || err.Error() != "it has more than 3 bytes" {
		t.Errorf("too large: %q, %v", text, err)
	}
	if _, err := ReadFile(filepath.Join(dir, "missing"), 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := ReadFile(dir, 4); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a folder: %v", err)
	}
	if err := os.Symlink(name, name+".link"); err != nil {
		t.Skip(err)
	}
	if _, err := ReadFile(name+".link", 4); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a link: %v", err)
	}
}

// TestReadFileThatSaysNoSize checks files with a size of 0 that have contents: files of the
// kernel, and files that grow after their size was read.
func TestReadFileThatSaysNoSize(t *testing.T) {
	const name = "/proc/version"
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() != 0 {
		t.Skip("there is no such file here")
	}
	if text, err := ReadFile(name, 3); text != nil || err == nil {
		t.Errorf("%q, %v", text, err)
	}
}
