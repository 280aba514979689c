package emit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhatIsShownIsEmitted checks that the lines of Go in the comment of each emitter are in a
// golden file, in the same order.
func TestWhatIsShownIsEmitted(t *testing.T) {
	var golden [][]string
	for _, name := range []string{"topology_gen.go", "topology_ports_gen.go"} {
		files, err := filepath.Glob("../../generated_test/*/" + name)
		if err != nil || len(files) == 0 {
			t.Fatal("no golden cases: ", err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden = append(golden, codeLines(strings.Split(string(text), "\n")))
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
			for _, excerpt := range excerpts(f.Doc) {
				shown++
				if !slices.ContainsFunc(golden, func(lines []string) bool { return showsPartOf(lines, excerpt) }) {
					t.Errorf("%s shows what no golden file has:\n%s", f.Name.Name, strings.Join(excerpt, "\n"))
				}
			}
		}
	}
	if shown == 0 {
		t.Error("no emitter shows what it emits")
	}
}

// excerpts are the blocks of code in a comment.
func excerpts(doc *ast.CommentGroup) (blocks [][]string) {
	var block []string
	for _, c := range append(slices.Clone(doc.List), &ast.Comment{Text: "// end"}) {
		if line, ok := strings.CutPrefix(c.Text, "//\t"); ok {
			block = append(block, line)
		} else if c.Text != "//" && len(block) > 0 {
			blocks, block = append(blocks, codeLines(block)), nil
		}
	}
	return blocks
}

// codeLines are the lines of code, without indents. "…" means omitted lines.
func codeLines(lines []string) (code []string) {
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" && line != "…" && !strings.HasPrefix(line, "//") {
			code = append(code, line)
		}
	}
	return code
}

// showsPartOf reports whether lines has the lines of an excerpt, in their order.
func showsPartOf(lines, excerpt []string) bool {
	for _, line := range lines {
		if len(excerpt) > 0 && excerpt[0] == line {
			excerpt = excerpt[1:]
		}
	}
	return len(excerpt) == 0
}
