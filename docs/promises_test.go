package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// noTestYet marks a row of a table that has no test.
const noTestYet = "none yet"

// promisePages are the pages whose tables name tests in their last column.
var promisePages = []string{"docs/reference/promises.md", "docs/reference/promises-runtime.md", "docs/reference/rast.md", "docs/reference/chimaera.md", "docs/reference/recovery.md", "docs/reference/faults.md"}

// TestPromises checks that every test that a table names exists.
func TestPromises(t *testing.T) {
	for _, page := range promisePages {
		t.Run(page, func(t *testing.T) { checkProofs(t, page) })
	}
}

func checkProofs(t *testing.T, page string) {
	text, err := os.ReadFile(filepath.Join(repository, page))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	proof := regexp.MustCompile("`([^`]+)`")
	for i, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 2 || strings.HasSuffix(line, " | proved by |") {
			continue
		}
		lines++
		proved := strings.TrimSuffix(cells[len(cells)-1], " |")
		if proved == noTestYet {
			t.Logf("%s:%d: no test yet: %s", page, i+1, cells[0])
			continue
		}
		names := proof.FindAllStringSubmatch(proved, -1)
		if len(names) == 0 {
			t.Errorf("%s:%d: the row names no test", page, i+1)
		}
		for _, name := range names {
			if path, test, _ := strings.Cut(name[1], " "); !exists(path, test) {
				t.Errorf("%s:%d: the test %s does not exist", page, i+1, name[1])
			}
		}
	}
	if lines == 0 {
		t.Errorf("%s has no rows", page)
	}
}

// exists reports whether a file or folder exists and, if test is not empty, whether
// the folder contains this test.
func exists(path, test string) bool {
	path = filepath.Join(repository, path)
	if test == "" {
		_, err := os.Stat(path)
		return err == nil
	}
	files, err := filepath.Glob(filepath.Join(path, "*_test.go"))
	if err != nil {
		return false
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "\nfunc "+test+"(") {
			return true
		}
	}
	return false
}
