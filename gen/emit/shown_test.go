package emit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatIsShownIsEmitted: the Go that stands above an emitter is that of golden cases,
// line by line.
func TestWhatIsShownIsEmitted(t *testing.T) {
	emitted := make(map[string]bool)
	for _, pattern := range []string{"topology_gen.go", "topology_ports_gen.go"} {
		golden, err := filepath.Glob("../../generated_test/*/" + pattern)
		if err != nil || len(golden) == 0 {
			t.Fatal("no golden cases: ", err)
		}
		for _, name := range golden {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				emitted[strings.TrimSpace(line)] = true
			}
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Doc == nil || f.Recv == nil {
				continue
			}
			for _, c := range f.Doc.List {
				line, ok := strings.CutPrefix(c.Text, "//\t")
				if line = strings.TrimSpace(line); !ok || line == "…" {
					continue
				}
				if shown++; !emitted[line] {
					t.Errorf("%s shows what is not emitted: %s", f.Name.Name, line)
				}
			}
		}
	}
	if shown == 0 {
		t.Error("no emitter shows what it emits")
	}
}
