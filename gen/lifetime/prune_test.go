package lifetime

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// imported gives the packages that a package imports.
type imported []*types.Package

func (i imported) Import(path string) (*types.Package, error) {
	for _, p := range i {
		if p.Path() == path {
			return p, nil
		}
	}
	return nil, errors.New(path + " is not imported")
}

// pruned is Analyzer after Prune and a second type check, as bind does it.
var pruned = &analysis.Analyzer{
	Name: "pruned", Doc: "is Analyzer on pruned files",
	Run: func(pass *analysis.Pass) (any, error) {
		whole := &Package{Fset: pass.Fset, Types: pass.Pkg, Info: pass.TypesInfo, Files: pass.Files, Generated: make(map[*ast.File]bool)}
		var own []*ast.File
		for _, file := range pass.Files {
			if generated(file) {
				whole.Generated[file] = true
			} else {
				own = append(own, file)
			}
		}
		suspects := Suspects(own, newRecognizer(whole).handlers())
		p := &Package{Fset: pass.Fset, Info: NewInfo()}
		p.Files, p.Generated = Prune(pass.Files, whole.Generated, suspects)
		var wrong error
		config := types.Config{Importer: imported(pass.Pkg.Imports()), Error: func(err error) {
			if e, ok := errors.AsType[types.Error](err); !ok || !e.Soft {
				wrong = err
			}
		}}
		p.Types, _ = config.Check(pass.Pkg.Path(), pass.Fset, p.Files, p.Info)
		for _, l := range Check(p, suspects) {
			pass.Reportf(l.Pos, "%s (%s)", l.Message(), l.Suggestion())
		}
		return nil, wrong
	},
}

// TestPruneLosesNothing: what is left of a package has no type errors and the same
// findings.
func TestPruneLosesNothing(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), pruned, "crawl", "hostile")
}

// TestPruneLeavesOut what handlers do not mention.
func TestPruneLeavesOut(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", `package a
type A struct{ b B }
type B struct{}
type C struct{}
const one, two = 1, 2
var x, y = one, C{}
var z = 3
func (a *A) ReceiveM(m *B) { help(m) }
func (a *A) Other() { unused() }
func help(b *B) { println(z) }
func unused() { println(x) }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := Prune([]*ast.File{file}, nil, []Handler{{Type: "A", Name: "ReceiveM", Message: 0, Sender: None, Context: None}})
	var names []string
	for _, d := range files[0].Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body == nil {
				names = append(names, d.Name.Name+" without a body")
			} else {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				names = append(names, specNames(s)...)
			}
		}
	}
	if want := []string{"A", "B", "z", "ReceiveM", "Other without a body", "help"}; !slices.Equal(names, want) {
		t.Errorf("left are %q, want %q", names, want)
	}
}

// TestSuspects: bodies of func (a *A) ReceiveM(ctx context.Context, m *M, out *ASender) error.
func TestSuspects(t *testing.T) {
	for body, want := range map[string]bool{
		`a.n += m.N; return nil`:                                            false,
		`a.last = *m; out.SendM(*m); return nil`:                            false,
		`if m == nil { return ctx.Err() }; a.body = m.Body[1:]; return nil`: true, // Body may be an array
		`a.list = append(a.list, m.Body...); return nil`:                    false,
		`return a.help(m, out)`:                                             false,
		`return a.keep(m)`:                                                  true,
		`a.last = m; return nil`:                                            true,
		`a.p = &m.N; return nil`:                                            true,
		`return json.Unmarshal(m.Body, &m.N)`:                               false,
		`go out.SendM(*m); return nil`:                                      true,
		`a.out = out; return nil`:                                           true,
		`send := out.SendM; send(*m); return nil`:                           true,
		`ctx, cancel := context.WithTimeout(ctx, 1); defer cancel(); return db.Query(ctx)`: false,
		`ctx, cancel := context.WithTimeout(ctx, 1); a.cancel = cancel; return nil`:        true,
		`a.ctx = ctx; return nil`:                                                true,
		`a.ctx = context.WithValue(ctx, 1, 2); return nil`:                       true,
		`sort.Slice(a.list, func(i, j int) bool { return m.N > i }); return nil`: false,
		`a.f = func() { m.N++ }; return nil`:                                     true,
		`defer func() { m.N++ }(); return nil`:                                   false,
		`time.AfterFunc(1, func() { m.N++ }); return nil`:                        true,
		`a.n = m.Size(); return nil`:                                             false,
		`a.last = m.Self(); return nil`:                                          true,
		`a.last = &*m; return nil`:                                               true,
		`return a.recurse(m)`:                                                    false,
	} {
		const rest = `
func (a *A) help(m *M, out *ASender) error { out.SendM(*m); return nil }
func (a *A) keep(m *M) error { a.last = m; return nil }
func (a *A) recurse(m *M) error { return a.recurse(m) }
func (m *M) Size() int { return m.N }
func (m *M) Self() *M { return m }
`
		file, err := parser.ParseFile(token.NewFileSet(), "a.go",
			"package a\nfunc (a *A) ReceiveM(ctx context.Context, m *M, out *ASender) error {"+body+"}\n"+rest, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		handlers := []Handler{{Type: "A", Name: "ReceiveM", Message: 1, Sender: 2, Context: 0}}
		if got := len(Suspects([]*ast.File{file}, handlers)) > 0; got != want {
			t.Errorf("%s: suspect %v, want %v", body, got, want)
		}
	}
}
