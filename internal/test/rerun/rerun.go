// Package rerun makes go test run a test again when code changes that only the child
// processes of the test read.
//
// go test caches the result of a test until its binary changes, or a file or folder
// changes that the test itself has opened. A test that builds and runs a command opens
// none of the command's files, and the test's binary does not contain the command.
package rerun

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// code lists the folders from which the commands and generated programs are built.
var code = []string{"cmd", "gen", "runtime", "schemas", "spec", "templates"}

// WhenCodeChanges reads the folders of the commands and of the runtime, and the folders
// in more, which are relative to the root of the module. go test then compares the size
// and time of each file in them.
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

// read reads a folder and its subfolders, except for testdata. The tests that own the
// files in testdata open them, and other tests write there.
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
