package emit

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestVariablesAreListed checks that variables lists all variables of the output, because a
// variable would shadow an import with the same name.
func TestVariablesAreListed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\bv\("(\w+)"\)`)
	used := make(map[Ident]bool)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllSubmatch(text, -1) {
			name := Ident(m[1])
			if used[name] = true; name != "_" && !slices.Contains(variables, name) {
				t.Errorf("variables lacks %s", name)
			}
		}
	}
	if len(used) == 0 {
		t.Error("no variable is used")
	}
}
