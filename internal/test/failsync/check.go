package failsync

import (
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/memdir"
)

// Check tests which files a call makes durable, and that it returns the error of each sync that
// fails. The function prepare gets an empty directory and returns the call. It runs once for
// each sync.
//
// The paths in want are relative to the directory, separated by spaces, and in the order of the
// syncs. Numbers and random parts of names are replaced by N. A question mark after a path says
// that the call succeeds although this sync has failed.
func Check(t *testing.T, want string, prepare func(dir string) (call func() error)) {
	t.Helper()
	paths := strings.Fields(want)
	for fail := range 1 + len(paths) {
		synced, err := Syncs(t, fail, prepare)
		switch all := strings.ReplaceAll(strings.Join(paths, " "), "?", ""); {
		case fail == 0 && (err != nil || strings.Join(synced, " ") != all):
			t.Fatalf("synced %v, want %v; the call returned %v", synced, paths, err)
		case fail > 0 && (err != nil) == strings.HasSuffix(paths[fail-1], "?"):
			t.Errorf("sync %d of %v has failed; the call returned %v", fail, paths, err)
		}
	}
}

// Syncs returns the files that a call syncs. The sync number fail, counted from 1, fails. The
// others succeed without being carried out.
func Syncs(t *testing.T, fail int, prepare func(dir string) (call func() error)) (synced []string, err error) {
	t.Helper()
	dir := memdir.New(t)
	call := prepare(dir)
	Watch(t, Sync, func(c Call) error {
		synced = append(synced, kindOfFile(dir, c.Path))
		if len(synced) == fail {
			return syscall.EIO
		}
		return ErrSkip
	}, func() { err = call() })
	return synced, err
}

// numberInName matches the part of a name that differs between runs.
var numberInName = regexp.MustCompile(`[0-9a-f-]*[0-9][0-9a-f-]*\.`)

// kindOfFile returns the path of a file below dir, without its numbers.
func kindOfFile(dir, path string) string {
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return path
	}
	return numberInName.ReplaceAllString(rel, "N.")
}
