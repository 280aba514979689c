package bind

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/topogen/topogen/spec"
)

// excludedFile is a Go file of the package that this build does not compile, because its build
// constraints are not satisfied or it is a test. Another build compiles it together with the
// generated files, so these must not declare its names.
type excludedFile struct {
	name string // absolute
	text []byte
	test bool
	cgo  bool // it imports "C", and cgo is off
	file *ast.File
}

// ignored is the tag that conventionally excludes a file from all builds.
const ignored = "ignore"

// parseExcluded parses the files that this build excludes. It ignores syntax errors: the
// build that compiles the file reports them.
func (s *source) parseExcluded(fset *token.FileSet) {
	s.excluded = slices.DeleteFunc(s.excluded, func(l *excludedFile) bool {
		if e := constraintOf(l.name, l.text); e != nil && e.String() == ignored {
			return true
		}
		l.file, _ = parser.ParseFile(fset, l.name, l.text, parser.SkipObjectResolution)
		if l.file == nil || l.file.Name == nil {
			return true
		}
		for _, d := range l.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				f.Body = nil // not needed, and large in tests
			}
		}
		return false
	})
}

// forget drops the files of other packages, such as external tests.
func (s *source) forget(packageName string) {
	s.excludedNames = nil
	s.excluded = slices.DeleteFunc(s.excluded, func(l *excludedFile) bool { return l.file.Name.Name != packageName })
}

// absent returns an excluded file that declares a name of the topology, if this build excludes
// all files of the package; else nil. If there is no such file, the package is new.
func (s *source) absent(t *spec.Topology) *excludedFile {
	if len(s.files) > 0 || len(s.excluded) == 0 {
		return nil
	}
	var names []string
	for i := range t.Processors {
		names = append(names, t.Processors[i].Ident, t.Processors[i].Type.Value)
	}
	for i := range t.Messages {
		names = append(names, t.Messages[i].Type.Value)
	}
	for i := range t.Edges {
		names = append(names, t.Edges[i].Message.Value)
	}
	if l := s.declaring("", names); l != nil && !l.test {
		return l
	}
	return nil
}

// taken maps each name at package level, in the files of all builds, to its declaration.
func (s *source) taken() map[string]*ast.Ident { return declared(s.all()) }

// all returns the files of all builds, including excluded files.
func (s *source) all() []*ast.File {
	files := slices.Clone(s.files)
	for _, l := range s.excluded {
		files = append(files, l.file)
	}
	return files
}

// inExcludedFile says which excluded file of the package at importPath, "" for the generated
// package, declares one of the names, and why the file is excluded; "" if none does.
// receiver is the type of a method, or "".
func (b *binder) inExcludedFile(importPath, receiver string, names ...string) string {
	s := b.sources[importPath]
	switch {
	case importPath == "":
		s = b.root.source
	case s == nil:
		s = b.loader.sourceOf(importPath)
		s.parseExcluded(b.fset)
		s.forget(b.qualifier(importPath))
		b.sources[importPath] = s
	}
	if l := s.declaring(receiver, names); l != nil {
		return filepath.Base(l.name) + " declares it, " + l.why()
	}
	return ""
}

// sourceOf is the source of one of the user's packages, if no code is generated into it. For
// any other package the source is empty.
func (l *loader) sourceOf(path string) *source {
	if p := l.listed[path]; p != nil && mayChange(p) && l.roots[path] == nil {
		if s, err := readSource(l.fset, filepath.Dir(p.GoFiles[0]), l.env); err == nil {
			return s
		}
	}
	return new(source)
}

// declaring returns an excluded file that declares a type or function with one of the names, or nil.
func (s *source) declaring(receiver string, names []string) *excludedFile {
	if s.excludedNames == nil {
		s.excludedNames = make(map[string]*excludedFile)
		for _, l := range s.excluded {
			for id, of := range declarations(l.file, false) {
				if name := of + "." + id.Name; s.excludedNames[name] == nil {
					s.excludedNames[name] = l
				}
			}
		}
	}
	for _, name := range names {
		if l := s.excludedNames[receiver+"."+name]; l != nil {
			return l
		}
	}
	return nil
}

// why says why a file is excluded.
func (l *excludedFile) why() string {
	switch e := constraintOf(l.name, l.text); {
	case l.test:
		return "and is a test, which is not part of the package"
	case l.cgo:
		return "but this build leaves it out: it imports C, and cgo is off"
	case e != nil:
		return "but this build leaves it out: its constraint is " + e.String()
	}
	return "but this build leaves it out"
}

// remedy says how to build with an excluded file.
func (l *excludedFile) remedy() string {
	tag, ok := constraintOf(l.name, l.text).(*constraint.TagExpr)
	switch {
	case l.cgo:
		return "set CGO_ENABLED=1"
	case !ok:
		return "build in an environment that satisfies the constraint"
	case isSystem(tag.Tag):
		return "set GOOS=" + tag.Tag
	case isArchitecture(tag.Tag):
		return "set GOARCH=" + tag.Tag
	case slices.Contains(sanitizers, tag.Tag):
		return "set GOFLAGS=-" + tag.Tag
	}
	return "run topogen with --tags " + tag.Tag
}

// constraint is the build constraint for the output: the constraint of the package's files,
// if all have one. Without it, some builds would compile only the output. A package without
// files in this build is new and needs no constraint.
func (s *source) constraint() string {
	if len(s.files) == 0 {
		return ""
	}
	files := slices.DeleteFunc(slices.Clone(s.excluded), func(l *excludedFile) bool { return l.test })
	for i, file := range s.files {
		files = append(files, &excludedFile{name: s.names[i], text: s.texts[s.names[i]], file: file})
	}
	all := make(map[string]constraint.Expr)
	for _, l := range files {
		e := constraintOf(l.name, l.text)
		if imports(l.file, "C") {
			e = and(e, &constraint.TagExpr{Tag: "cgo"})
		}
		if e == nil {
			return ""
		}
		all[e.String()] = e
	}
	delete(all, ignored)
	var either constraint.Expr
	for _, text := range slices.Sorted(maps.Keys(all)) {
		if either == nil {
			either = all[text]
		} else {
			either = &constraint.OrExpr{X: either, Y: all[text]}
		}
	}
	if either == nil || always(either) {
		return ""
	}
	return either.String()
}

// constraintOf is the constraint in the name of a file and in its build line; nil if there is none.
func constraintOf(name string, text []byte) constraint.Expr {
	e := constraintOfName(filepath.Base(name))
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if constraint.IsGoBuild(line) {
			if line, err := constraint.Parse(line); err == nil {
				e = and(e, line)
			}
			break
		}
		if strings.HasPrefix(line, "package ") {
			break
		}
	}
	return e
}

// constraintOfName is the constraint of a file's name: a system, an architecture or both at its
// end.
func constraintOfName(name string) constraint.Expr {
	name, _, _ = strings.Cut(name, ".")
	words := strings.Split(strings.TrimSuffix(name, "_test"), "_")[1:]
	n := len(words)
	if n == 0 || !isSystem(words[n-1]) && !isArchitecture(words[n-1]) {
		return nil
	}
	e := constraint.Expr(&constraint.TagExpr{Tag: words[n-1]})
	if n > 1 && isArchitecture(words[n-1]) && isSystem(words[n-2]) {
		e = and(&constraint.TagExpr{Tag: words[n-2]}, e)
	}
	return e
}

func isSystem(word string) bool { return !spec.Compiled("a_"+word+"_amd64.go", "amd64") }

func isArchitecture(word string) bool { return !isSystem(word) && !spec.Compiled("a_"+word+".go", "") }

func and(x, y constraint.Expr) constraint.Expr {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	return &constraint.AndExpr{X: x, Y: y}
}

// tagsMax bounds the number of tags in a constraint for which all combinations are tried.
const tagsMax = 8

// always reports whether a constraint holds for all combinations of tags.
func always(e constraint.Expr) bool {
	values := make(map[string]bool)
	e.Eval(func(tag string) bool { values[tag] = false; return false })
	if len(values) > tagsMax {
		return false
	}
	tags := slices.Sorted(maps.Keys(values))
	for set := range 1 << len(tags) {
		for i, tag := range tags {
			values[tag] = set>>i&1 == 1
		}
		if !e.Eval(func(tag string) bool { return values[tag] }) {
			return false
		}
	}
	return true
}
