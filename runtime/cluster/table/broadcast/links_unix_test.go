//go:build unix

package broadcast

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
)

// TestLinks: a link in place of the log is refused, and the file behind it stays as it was.
func TestLinks(t *testing.T) {
	for kind, link := range map[string]func(string, string) error{"a symbolic link": os.Symlink, "2 names": os.Link} {
		dir := memdir.Quick(t)
		path, b := writeLog(t, dir, 3)
		b = append(b, 1, 2, 3) // a torn frame, which a start cuts
		other := filepath.Join(dir, "other")
		for _, err := range []error{os.WriteFile(other, b, 0o600), os.Remove(path), link(other, path)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := openFile(dir, "n1")
		if err == nil || !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", kind, err)
		}
		if after, err := os.ReadFile(other); err != nil || string(after) != string(b) {
			t.Errorf("%s: the file behind the link has %d bytes, want %d: %v", kind, len(after), len(b), err)
		}
	}
}

// TestModes: only the owner can read the log and its folder, whatever the mask of the process. The
// mask belongs to the whole process: the test must not run beside others.
func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path, _ := writeLog(t, memdir.Quick(t), 3)
	for _, path := range []string{path, filepath.Dir(path)} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v: %v", path, info.Mode(), err)
		}
	}
}
