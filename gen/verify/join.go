package verify

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/gen/plan"
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
	f := formatter{file: file, fset: fset, source: p.reduced, comments: p.syntax.Comments, known: forms{known: make(map[string]*form)}}
	f.Grow(len(p.source) * 5 / 4) // it will be indented
	decls := slices.DeleteFunc(slices.Clone(p.syntax.Decls), func(d ast.Decl) bool {
		g, ok := d.(*ast.GenDecl)
		return ok && g.Tok == token.IMPORT
	})
	next := func() (d ast.Decl) {
		d, decls = decls[0], decls[1:]
		return d
	}
	if p.pieces == nil {
		for len(decls) > 0 && p.err == nil {
			p.err = f.declaration(next())
		}
	}
	for i := 0; i < len(p.pieces) && p.err == nil; i++ {
		piece := &p.pieces[i]
		if piece.use != dropped {
			d := next()
			if piece.use == whole {
				p.err = f.declaration(d)
				continue
			}
		}
		p.err = f.piece(piece)
	}
	p.body = f.Bytes()
}

// formatter prints the declarations of a part.
type formatter struct {
	bytes.Buffer
	file     *token.File
	fset     *token.FileSet
	source   []byte
	comments []*ast.CommentGroup
	known    forms
}

// begin sets a declaration apart from the one before.
func (f *formatter) begin() {
	if f.Len() > 0 {
		f.WriteString("\n\n")
	}
}

// declaration prints what was parsed.
func (f *formatter) declaration(d ast.Decl) error {
	f.begin()
	doc, bare := takeDoc(d)
	source := f.source[f.file.Offset(d.Pos()):f.file.Offset(d.End())]
	if !plain(doc) || !free(d, source) {
		for len(f.comments) > 0 && f.comments[0] != doc && f.comments[0].End() < d.Pos() {
			f.comments = f.comments[1:]
		}
		return style.Fprint(f, f.fset, &printer.CommentedNode{Node: d, Comments: f.comments})
	}
	writeDoc(&f.Buffer, doc)
	return f.known.format(&f.Buffer, source, func() error {
		return style.Fprint(f, f.fset, &printer.CommentedNode{Node: bare, Comments: f.comments})
	})
}

// piece prints a function whose body was not parsed, being like another's.
func (f *formatter) piece(p *piece) error {
	f.begin()
	f.Write(p.doc)
	return f.known.format(&f.Buffer, p.source, func() error {
		const clause = "package p;"
		fset := token.NewFileSet()
		syntax, err := parser.ParseFile(fset, "", clause+string(p.source), parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		return style.Fprint(f, fset, &printer.CommentedNode{Node: syntax.Decls[0], Comments: syntax.Comments})
	})
}

// takeDoc returns the comment of a declaration and a copy without it.
func takeDoc(d ast.Decl) (doc *ast.CommentGroup, bare ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		c := *d
		c.Doc = nil
		return d.Doc, &c
	case *ast.GenDecl:
		c := *d
		c.Doc = nil
		return d.Doc, &c
	}
	return nil, d
}

// plain reports whether gofmt leaves a doc comment as it is.
func plain(doc *ast.CommentGroup) bool {
	if doc != nil {
		for _, c := range doc.List {
			if !plainLine(c.Text) {
				return false
			}
		}
	}
	return true
}

// plainText is plain for the lines of a comment.
func plainText(doc []byte) bool {
	for line := range bytes.Lines(doc) {
		if !plainLine(strings.TrimSuffix(string(line), "\n")) {
			return false
		}
	}
	return true
}

// plainLine reports whether a line of a comment is none of a list, a heading or
// code, and has no quotes and no space at its end.
func plainLine(line string) bool {
	text, ok := strings.CutPrefix(line, "// ")
	return ok && text != "" && isWord(text[0]) && !isDigit(text[0]) && text == strings.TrimRight(text, " \t") && !strings.Contains(text, "``") && !strings.Contains(text, "''")
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
// standard library first, declarations. A build constraint comes before them.
func join(p *plan.Plan, name string, parts []*part) ([]byte, error) {
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
