//go:build unix

package bind

import (
	"context"
	"go/token"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
)

// TestImpatient has a pipe that the go command waits for, and one that it does not.
func TestImpatient(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "a.go"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, result := range []error{context.Canceled, nil} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			l := newLoader(token.NewFileSet(), newEnvironment(nil), dir)
			err := l.impatient(func() error { <-ctx.Done(); return result }, cancel)
			if (err == nil) != (result == nil) {
				t.Errorf("%v of a list that ends with %v", err, result)
			}
		})
	}
}

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
