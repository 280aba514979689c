package generated_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIndex checks that each README.md with cases has one row for each case.
func TestIndex(t *testing.T) {
	for _, c := range []struct{ index, cases, suffix string }{
		{"README.md", "*/topology.yml", "/topology.yml"},
		{"testdata/README.md", "testdata/*/topology.yml", "/topology.yml"},
		{"../gen/bind/testdata/README.md", "../gen/bind/testdata/*.txtar", ""},
	} {
		text, err := os.ReadFile(c.index)
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(c.cases)
		if err != nil || len(files) == 0 {
			t.Fatal("no cases", err)
		}
		listed := make(map[string]bool)
		for _, line := range strings.Split(string(text), "\n") {
			if cell, ok := strings.CutPrefix(line, "| "); ok {
				name, _, _ := strings.Cut(strings.TrimPrefix(cell, "["), " ")
				name, _, _ = strings.Cut(name, "]")
				listed[name] = true
			}
		}
		for _, file := range files {
			if name := filepath.Base(strings.TrimSuffix(filepath.ToSlash(file), c.suffix)); !listed[name] {
				t.Errorf("%s has no row for %s", c.index, name)
			}
		}
	}
}
