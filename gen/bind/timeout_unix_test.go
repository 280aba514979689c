//go:build unix

package bind

import (
	"errors"
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
)

// hurried locates the small topology with more files in dir, and returns a loader with a short timeout.
func hurried(t *testing.T, dir, more string) (*Result, *loader) {
	t.Helper()
	in := writeSmall(t, dir, more)
	fset, env := token.NewFileSet(), newEnvironment(nil)
	r := locate(fset, env, in)
	return r, newLoaders(fset, env, []*Result{r}, Options{Cache: shared.cache})[0]
}

// TestPipe has a pipe among the Go files of an imported package, on which the go command
// blocks.
func TestPipe(t *testing.T) {
	r, l := hurried(t, filepath.Join(newModule(t), "small"), "-- b.go --\npackage small\n\nimport _ \"example.com/small/sub\"\n-- sub/sub.go --\npackage sub\n")
	if err := syscall.Mkfifo(filepath.Join(r.Dir, "sub", "pipe.go"), 0o666); err != nil {
		t.Fatal(err)
	}
	folder := memdir.Quick(t)
	t.Setenv("GOTMPDIR", folder)
	l.timeout = 200 * time.Millisecond
	l.failure = l.list(t.Context(), l.wanted)
	r.bind(t.Context())
	if got := said(r.reporter.findings); got != `topology.yml:2:7: TG314 the go command did not list the packages within 200ms: run "go list ./..." to see what it waits for, such as a named pipe among the Go files` || r.PortsReady {
		t.Error(got)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestEndlessCheck has types that double in size, so that the type check takes too long.
func TestEndlessCheck(t *testing.T) {
	var more strings.Builder
	more.WriteString("-- b.go --\npackage small\n\ntype T0 struct{}\n")
	for i := range 26 { // seconds, while the other tests run
		fmt.Fprintf(&more, "type T%d struct{ a, b T%d }\n", i+1, i)
	}
	r, l := hurried(t, newFolder(t), more.String())
	if err := l.list(t.Context(), l.wanted); err != nil {
		t.Fatal(err)
	}
	l.timeout = time.Millisecond
	r.bind(t.Context())
	want := "topology.yml:2:7: TG314 checking the types of package " + r.root.path + " (look for types that double in size with each line) took more than 1ms"
	if got := said(r.reporter.findings); got != want || r.PortsReady {
		t.Error(got)
	}
	// Verify must not wait for the check that is still running.
	if v, err := r.Verify(t.Context(), nil); err != nil || len(v.Own)+len(v.User) > 0 {
		t.Errorf("%v, %v", v, err)
	}
	if r.Done(); r.root == nil || r.reporter.texts == nil {
		t.Error("data that the check still reads was released")
	}
}

// TestAfterAnEndlessCheck checks that after a check that took too long, other packages with the
// same loader are not checked, and that a finding says so.
func TestAfterAnEndlessCheck(t *testing.T) {
	r := small(t, newFolder(t), "", Options{})
	r.loader.failure = errors.New("checking the types of another package took more than 3m0s")
	v, err := r.Verify(t.Context(), nil)
	if got := said(v.User); got != "topology.yml:2:7: TG314 checking the types of another package took more than 3m0s" || err != nil || len(v.Own) > 0 {
		t.Errorf("%s, %v, %v", got, v.Own, err)
	}
}
