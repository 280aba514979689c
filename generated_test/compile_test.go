package generated_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/topogen/topogen/internal/test/rerun"
)

// TestMustNotCompile checks the types of statements that generated code rules out: the compiler must report each.
func TestMustNotCompile(t *testing.T) {
	rerun.WhenCodeChanges(t, "generated_test")
	const path = "github.com/topogen/topogen/generated_test/"
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadTypes}, "context", path+"sample", path+"external")
	if err != nil {
		t.Fatal(err)
	}
	known := make(imported)
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			t.Fatal(p.Errors)
		}
		known.add(p.Types)
	}
	for statement, want := range map[string]string{
		`tree.Edge(sample.EdgeFeedParserRaw)`:    "",
		`tree.Processor(sample.ProcessorFeed)`:   "",
		`api.AskTry(ctx, external.Try{})`:        "",
		`api.AskAskToDesk(ctx, external.Ask{})`:  "",
		`tree.Edge(external.EdgeApiDeskAsk)`:     "cannot use external.EdgeApiDeskAsk (constant 0 of int type external.EdgeIndex) as sample.EdgeIndex value",
		`tree.Processor(external.ProcessorDesk)`: "cannot use external.ProcessorDesk (constant 2 of int type external.ProcessorIndex) as sample.ProcessorIndex value",
		`tree.Edge(sample.ProcessorFeed)`:        "cannot use sample.ProcessorFeed (constant 0 of int type sample.ProcessorIndex) as sample.EdgeIndex value",
		`api.AskAsk(ctx, external.Ask{})`:        "api.AskAsk undefined",      // another edge carries Ask
		`api.AskAskToLog(ctx, external.Ask{})`:   "api.AskAskToLog undefined", // the edge has no reply
		`api.AskLine(ctx, external.Line{})`:      "api.AskLine undefined",     // no edge has a reply
		`api.SendTry(ctx, external.Line{})`:      "cannot use external.Line{} (value of struct type external.Line) as external.Try value",
		`bell.SendTry(ctx, external.Try{})`:      "bell.SendTry undefined", // the edge is of another processor
	} {
		t.Run(statement, func(t *testing.T) {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, "a.go", `package a
import ("context"; "github.com/topogen/topogen/generated_test/external"; "github.com/topogen/topogen/generated_test/sample")
func _(ctx context.Context, s *sample.Topology, api *external.ApiSender, bell *external.BellSender) { tree := s.Tree(); _ = tree; _ = external.EdgeApiDeskAsk; `+statement+` }
`, 0)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			c := types.Config{Importer: known, Error: func(err error) { got = append(got, err.Error()) }}
			_, _ = c.Check("a", fset, []*ast.File{file}, nil)
			switch text := strings.Join(got, "\n"); {
			case want == "" && text != "":
				t.Errorf("it must compile: %s", text)
			case want != "" && (len(got) != 1 || !strings.Contains(text, want)):
				t.Errorf("the errors are %q, want %s", text, want)
			}
		})
	}
}

// imported are packages by their paths.
type imported map[string]*types.Package

func (m imported) Import(path string) (*types.Package, error) { return m[path], nil }

func (m imported) add(p *types.Package) {
	if m[p.Path()] == nil {
		m[p.Path()] = p
		for _, other := range p.Imports() {
			m.add(other)
		}
	}
}
