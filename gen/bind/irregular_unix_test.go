//go:build unix

package bind

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestEndless finds a pipe wherever the go command would open it.
func TestEndless(t *testing.T) {
	for place, found := range map[string]bool{
		"p/go.mod": true, "go.work": true, "p/vendor/modules.txt": true, "p/q/a.go": true, "work": true,
		"p/q/a.txt": false, "p/.q/a.go": false, "beside/a.go": false,
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, place)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "p"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(file, 0o666); err != nil {
			t.Fatal(err)
		}
		got := endless(filepath.Join(dir, "p"), filepath.Join(dir, "work"))
		if want := map[bool]string{true: file}[found]; got != want {
			t.Errorf("%s: %q", place, got)
		}
	}
}
