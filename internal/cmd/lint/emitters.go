package main

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// The package with the emitters of generated code, and the files that they emitted.
const (
	emitters = "gen/emit/*.go"
	emitted  = "generated_test/*/topology*_gen.go"
)

// makeIdents are the files of the emitters that may make an Ident from a literal.
var makeIdents = []string{"ident.go", "scope.go", "model.go", "recorder.go", "sender.go"}

// idents finds conversions to Ident in the emitters. Text from a topology becomes an
// identifier of generated code only by ParseIdent.
func idents(r *repo) (found []finding, err error) {
	files, err := r.glob(emitters)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || slices.Contains(makeIdents, path.Base(file)) {
			continue
		}
		syntax, err := r.parse(file)
		if err != nil {
			return nil, err
		}
		r.count(1)
		ast.Inspect(syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "Ident" {
					found = append(found, r.at(call.Pos(), "make the Ident by ParseIdent"))
				}
			}
			return true
		})
	}
	return found, nil
}

// shown finds lines of Go in the comments of the emitters that no golden file has in this
// order.
func shown(r *repo) (found []finding, err error) {
	golden, err := r.goldenLines()
	if err != nil {
		return nil, err
	}
	files, err := r.glob(emitters)
	if err != nil {
		return nil, err
	}
	excerptCount := 0
	for _, file := range files {
		syntax, err := r.parse(file)
		if err != nil {
			return nil, err
		}
		for _, d := range syntax.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Doc == nil || f.Recv == nil {
				continue
			}
			for _, excerpt := range excerpts(f.Doc) {
				excerptCount++
				if !slices.ContainsFunc(golden, func(lines []string) bool { return showsPartOf(lines, excerpt) }) {
					found = append(found, r.at(f.Doc.Pos(), "no golden file has the code that the comment of %s shows: copy it from a file in generated_test:\n\t%s", f.Name.Name, strings.Join(excerpt, "\n\t")))
				}
			}
		}
	}
	r.count(excerptCount)
	r.note("%d excerpts in comments", excerptCount)
	return found, nil
}

// goldenLines returns the lines of code of each golden file.
func (r *repo) goldenLines() (golden [][]string, err error) {
	files, err := r.glob(emitted)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := r.read(file)
		if err != nil {
			return nil, err
		}
		golden = append(golden, codeLines(strings.Split(text, "\n")))
	}
	return golden, nil
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
