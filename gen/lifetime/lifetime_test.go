package lifetime_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/topogen/topogen/gen/lifetime"
	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/internal/test/speed"
)

// TestHandlers checks the handlers in testdata, whose types are named after the behavior of
// the handlers. A comment "want" has the expected report; there must be no others. Packages
// pricing and shop have methods that are handlers because another package asserts them.
// Package hostile has recursion, infinitely many generic functions, and cycles of values.
// The packages are loaded together, because they need the same source of the standard library.
func TestHandlers(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), lifetime.Analyzer, "crawl", "pricing", "shop", "ledger", "hostile")
}

// TestNothingIsReportedInThisRepository checks that the examples and the packages of
// generated_test have no findings. topogen build --check, which .ci/run calls for the examples,
// checks the packages of topologies only.
func TestNothingIsReportedInThisRepository(t *testing.T) {
	speed.Long(t)
	rerun.WhenCodeChanges(t, "examples", "generated_test")
	tool := filepath.Join(t.TempDir(), "topogen-vet")
	for _, args := range [][]string{
		{"build", "-o", tool, "./cmd/topogen-vet"},
		{"vet", "-vettool=" + tool, "./examples/...", "./generated_test/..."},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = filepath.Join("..", "..")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
}

// load type-checks the text of a file whose handlers are methods ReceiveM of A.
func load(t *testing.T, text string) (*lifetime.Package, []lifetime.Handler) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "a.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	p := &lifetime.Package{Fset: fset, Info: lifetime.NewInfo(), Files: []*ast.File{file}}
	config := types.Config{Importer: importer.Default()}
	if p.Types, err = config.Check("a", fset, p.Files, p.Info); err != nil {
		t.Fatal(err)
	}
	return p, []lifetime.Handler{{Type: "A", Name: "ReceiveM", Params: []lifetime.Kind{lifetime.Message}}}
}

// TestWorkIsBounded checks that the analysis gives up on a function that is too large, and on a
// chain of calls that is too long.
func TestWorkIsBounded(t *testing.T) {
	const head = "package a\ntype M struct{ N int; Next *M }\ntype A struct{ last, next *M }\n"
	for name, text := range map[string]string{
		"statements": head + "func (a *A) ReceiveM(m *M) {\n" + strings.Repeat("\ta.last = m\n", 30_000) + "}\n",
		"calls": func() string {
			var b strings.Builder
			b.WriteString(head + "func (a *A) ReceiveM(m *M) { a.f0(m) }\n")
			for i := range 2_000 {
				fmt.Fprintf(&b, "func (a *A) f%d(m *M) { a.f%d(m) }\n", i, i+1)
			}
			b.WriteString("func (a *A) f2000(m *M) { a.last = m }\n")
			return b.String()
		}(),
		"variables": func() string { // each may be any of those before
			var b strings.Builder
			b.WriteString(head + "func (a *A) ReceiveM(m *M) {\n\tv0 := &M{Next: m}\n")
			for i := range 1_000 {
				fmt.Fprintf(&b, "\tv%d := &M{Next: v%d}\n\tv%d.Next.Next = v%d\n", i+1, i, i+1, i+1)
			}
			b.WriteString("}\n")
			return b.String()
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			p, handlers := load(t, text)
			if leaks := lifetime.Check(p, handlers); len(leaks) > 0 {
				t.Errorf("%d leaks, want none: the limit was not in force", len(leaks))
			}
		})
	}
}

// TestAFaultGivesNoResult checks that a panic of go/ssa, here because of missing types, gives no
// result.
func TestAFaultGivesNoResult(t *testing.T) {
	p, handlers := load(t, "package a\ntype M struct{}\ntype A struct{ last *M }\nfunc (a *A) ReceiveM(m *M) { a.last = m }\n")
	if leaks := lifetime.Check(p, handlers); len(leaks) != 1 {
		t.Fatalf("%d leaks, want 1", len(leaks))
	}
	p.Info.Uses, p.Info.Selections = nil, nil
	if leaks := lifetime.Check(p, handlers); leaks != nil {
		t.Errorf("%v, want nothing", leaks)
	}
}
