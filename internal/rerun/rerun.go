// Package rerun makes go test run a test again when code changes that only its child
// processes read.
//
// go test keeps the result of a test until the test's binary changes, or a file or a
// folder that the test itself has opened. A test that builds a command and runs it opens
// none of the command's files, and its binary does not change with them: what a test
// does not call is not linked.
package rerun

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// code are the folders from which the commands and generated programs are built.
var code = []string{"cmd", "gen", "runtime", "schemas", "spec", "templates"}

// WhenCodeChanges reads the folders of the commands and of the runtime, and more, which
// are seen from the root of the module. go test then compares size and time of each file
// in them.
func WhenCodeChanges(t testing.TB, more ...string) {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod in the folder of the test or above it")
		}
		dir = filepath.Dir(dir)
	}
	for _, folder := range append(more, code...) {
		read(t, filepath.Join(dir, folder))
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// read reads a folder and those below it, but for testdata: its files are opened by the
// test that they belong to, and other tests write there.
func read(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() && name != "testdata" && !strings.HasPrefix(name, ".") {
			read(t, filepath.Join(dir, name))
		}
	}
}
