package pool_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromisesNameTheirTests checks that each test that the reference names
// exists.
func TestPromisesNameTheirTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/promises-runtime.md")
	if err != nil {
		t.Fatal(err)
	}
	proofs := regexp.MustCompile("`(runtime/[a-z]+) (Test\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(proofs) == 0 {
		t.Fatal("it names none")
	}
	sources := make(map[string]string) // of a package's tests
	for _, p := range proofs {
		if sources[p[1]] == "" {
			sources[p[1]] = testsOf(t, filepath.Join("../..", p[1]))
		}
		if !strings.Contains(sources[p[1]], "\nfunc "+p[2]+"(") {
			t.Errorf("there is no %s in %s", p[2], p[1])
		}
	}
}

// testsOf returns the text of all tests in a directory.
func testsOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}
