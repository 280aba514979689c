package verify

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/gen/plan"
)

// style is the style of gofmt. The last bit, for which package printer has no name, makes
// it write numbers like gofmt.
var style = printer.Config{Mode: printer.UseSpaces | printer.TabIndent | 1<<30, Tabwidth: 8}

// format prints the part like gofmt, without its imports. It gives the printer a file set with
// only this file, because finding a file in the shared set takes longer than printing.
func (p *part) format(shared *token.FileSet) {
	fset := token.NewFileSet()
	fset.AddExistingFiles(shared.File(p.syntax.FileStart))
	file := *p.syntax // a copy, because the type checker reads the original
	file.Decls = slices.DeleteFunc(slices.Clone(file.Decls), func(d ast.Decl) bool {
		g, ok := d.(*ast.GenDecl)
		return ok && g.Tok == token.IMPORT
	})
	var b bytes.Buffer
	_ = style.Fprint(&b, fset, &file)                 // a file that was parsed can be printed
	_, p.body, _ = bytes.Cut(b.Bytes(), []byte("\n")) // drops the package clause
}

// importSpec is an import.
type importSpec struct{ path, name string }

// standard reports whether the path looks like a path of the standard library: its first
// element is not a domain.
func (s importSpec) standard() bool {
	first, _, _ := strings.Cut(s.path, "/")
	return !strings.Contains(first, ".")
}

func (s importSpec) compare(t importSpec) int {
	if s.standard() != t.standard() {
		if s.standard() {
			return -1
		}
		return 1
	}
	return strings.Compare(s.path, t.path)
}

// imports lists the imports of the part.
func (p *part) imports() (list []importSpec) {
	for _, i := range p.syntax.Imports {
		path, _ := strconv.Unquote(i.Path.Value) // valid, because it was parsed
		s := importSpec{path: path}
		if i.Name != nil {
			s.name = i.Name.Name
		}
		list = append(list, s)
	}
	return list
}

// join joins the parts of a file: build constraint, package clause, one import block with
// the standard library first, declarations.
func join(p *plan.Plan, name string, parts []*part) []byte {
	var imports []importSpec
	var bodies [][]byte
	for _, p := range parts {
		if p.name != name {
			continue
		}
		imports = append(imports, p.imports()...)
		if body := bytes.Trim(p.body, "\n"); len(body) > 0 {
			bodies = append(bodies, body)
		}
	}
	var b bytes.Buffer
	if p.Constraint != "" {
		b.WriteString("//go:build " + p.Constraint + "\n\n")
	}
	b.WriteString("package " + p.Package + "\n")
	writeImports(&b, imports)
	for _, body := range bodies {
		b.WriteByte('\n')
		b.Write(body)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func writeImports(b *bytes.Buffer, imports []importSpec) {
	if len(imports) == 0 {
		return
	}
	slices.SortFunc(imports, importSpec.compare)
	imports = slices.Compact(imports)
	b.WriteString("\nimport (\n")
	for i, s := range imports {
		if i > 0 && imports[i-1].standard() && !s.standard() {
			b.WriteByte('\n')
		}
		b.WriteByte('\t')
		if s.name != "" {
			b.WriteString(s.name + " ")
		}
		b.WriteString(strconv.Quote(s.path) + "\n")
	}
	b.WriteString(")\n")
}
