package generated_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"testing"

	"github.com/topogen/topogen/gen/plan"
)

// TestWords checks that plan.Words has all predeclared names that generated files use.
func TestWords(t *testing.T) {
	used := make(map[string]string) // names, each with a file that uses it
	for _, c := range cases(t) {
		files, err := filepath.Glob(filepath.Join(c.dir, "topology*_gen.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(syntax, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr: // a selected name is a field or a method
					n.Sel = ast.NewIdent("_")
				case *ast.Ident:
					if types.Universe.Lookup(n.Name) != nil {
						used[n.Name] = file
					}
				}
				return true
			})
		}
	}
	for word, file := range used {
		if !slices.Contains(plan.Words, word) {
			t.Errorf("%s uses %s, which plan.Words lacks", file, word)
		}
	}
	for _, word := range plan.Words {
		if used[word] == "" {
			t.Errorf("plan.Words has %s, which no file uses", word)
		}
	}
	if len(used) == 0 {
		t.Error("no file uses a predeclared name")
	}
}
