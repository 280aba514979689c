package verify

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// style is that of gofmt; the last bit, which printer does not name, makes it
// write numbers as gofmt does.
var style = printer.Config{Mode: printer.UseSpaces | printer.TabIndent | 1<<30, Tabwidth: 8}

// format prints the part as gofmt does, without its imports. It is all the printer
// sees of the shared set, where finding a file takes longer than printing.
func (p *part) format(shared *token.FileSet) {
	file := shared.File(p.syntax.FileStart)
	fset := token.NewFileSet()
	fset.AddExistingFiles(file)
	known := forms{known: make(map[string]*form)}
	comments := p.syntax.Comments
	var b bytes.Buffer
	b.Grow(len(p.source) * 5 / 4) // it will be indented
	for _, d := range p.syntax.Decls {
		doc, bare := takeDoc(d)
		if bare == nil {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		source := p.source[file.Offset(d.Pos()):file.Offset(d.End())]
		if !plain(doc) || !free(d, source) {
			for len(comments) > 0 && comments[0] != doc && comments[0].End() < d.Pos() {
				comments = comments[1:]
			}
			p.err = style.Fprint(&b, fset, &printer.CommentedNode{Node: d, Comments: comments})
		} else {
			writeDoc(&b, doc)
			p.err = known.format(&b, source, func() error {
				return style.Fprint(&b, fset, &printer.CommentedNode{Node: bare, Comments: comments})
			})
		}
		if p.err != nil {
			return
		}
	}
	p.body = b.Bytes()
}

// takeDoc returns the comment of a declaration and a copy without it; nil for
// imports.
func takeDoc(d ast.Decl) (doc *ast.CommentGroup, bare ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		c := *d
		c.Doc = nil
		return d.Doc, &c
	case *ast.GenDecl:
		if d.Tok != token.IMPORT {
			c := *d
			c.Doc = nil
			return d.Doc, &c
		}
	}
	return nil, nil
}

// plain reports whether gofmt leaves a doc comment as it is: it has no lists,
// headings, code or quotes.
func plain(doc *ast.CommentGroup) bool {
	if doc == nil {
		return true
	}
	for _, c := range doc.List {
		text, ok := strings.CutPrefix(c.Text, "// ")
		if !ok || text == "" || !isWord(text[0]) || isDigit(text[0]) || strings.Contains(text, "``") || strings.Contains(text, "''") {
			return false
		}
	}
	return true
}

func writeDoc(b *bytes.Buffer, doc *ast.CommentGroup) {
	if doc != nil {
		for _, c := range doc.List {
			b.WriteString(c.Text + "\n")
		}
	}
}

// free reports whether a declaration is free of columns, whose widths depend on
// names, and is no type on one line, which gofmt breaks by its size: forms looks
// at the rest.
func free(d ast.Decl, source []byte) bool {
	g, ok := d.(*ast.GenDecl)
	if !ok {
		return true // a function
	}
	if g.Tok != token.TYPE || len(g.Specs) != 1 || !bytes.Contains(source, []byte("\n")) {
		return false
	}
	switch t := g.Specs[0].(*ast.TypeSpec).Type.(type) {
	case *ast.InterfaceType:
		return true
	case *ast.StructType:
		named := 0
		for _, f := range t.Fields.List {
			named += len(f.Names)
		}
		return named < 2
	}
	return false
}

// importSpec is an import.
type importSpec struct{ path, name string }

// standard reports whether the path looks like one of the standard library: its
// first element is no domain.
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

// imports lists what the part imports.
func (p *part) imports() ([]importSpec, error) {
	var list []importSpec
	for _, i := range p.syntax.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return nil, err
		}
		s := importSpec{path: path}
		if i.Name != nil {
			s.name = i.Name.Name
		}
		list = append(list, s)
	}
	return list, nil
}

// join puts the parts of a file together: clause, one import block with the
// standard library first, declarations.
func join(packageName, name string, parts []*part) ([]byte, error) {
	var imports []importSpec
	var bodies [][]byte
	for _, p := range parts {
		if p.name != name {
			continue
		}
		if p.err != nil {
			return nil, p.err
		}
		list, err := p.imports()
		if err != nil {
			return nil, err
		}
		imports = append(imports, list...)
		if body := bytes.Trim(p.body, "\n"); len(body) > 0 {
			bodies = append(bodies, body)
		}
	}
	var b bytes.Buffer
	b.WriteString("package " + packageName + "\n")
	writeImports(&b, imports)
	for _, body := range bodies {
		b.WriteByte('\n')
		b.Write(body)
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
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
