package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"
)

// module is the module of the repository.
const module = "github.com/topogen/topogen"

// repo is a checkout. The checks share what it has read.
type repo struct {
	root     string
	fset     *token.FileSet
	paths    func() ([]string, error)
	list     func() ([]*packages.Package, error)
	graph    func() (graph, error)
	packages func() ([]*typed, error)
	notes    strings.Builder
	examined int // by the check that runs

	mu     sync.Mutex
	parsed map[string]*parsing // by absolute path
}

// parsing is the syntax of a file, which is parsed once.
type parsing struct {
	once sync.Once
	file *ast.File
	err  error
}

func newRepo(root string) *repo {
	r := &repo{root: root, fset: token.NewFileSet(), parsed: make(map[string]*parsing)}
	r.paths = sync.OnceValues(r.walk)
	r.list = sync.OnceValues(r.loadList)
	r.graph = sync.OnceValues(r.loadGraph)
	r.packages = sync.OnceValues(r.loadPackages)
	return r
}

// walk returns the Markdown and Go files that people write and the generated files,
// relative to the root and with slashes. Input of tests is in folders named testdata.
func (r *repo) walk() (paths []string, err error) {
	err = filepath.WalkDir(r.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != r.root && (name == "testdata" || name == "node_modules" || name != ".github" && strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(name); !d.IsDir() && (ext == ".md" || ext == ".go") {
			paths = append(paths, r.relative(path))
		}
		return nil
	})
	return paths, err
}

// absolute is the path of a file that is relative to the root.
func (r *repo) absolute(path string) string { return filepath.Join(r.root, filepath.FromSlash(path)) }

// relative is the path of a file relative to the root, with slashes.
func (r *repo) relative(path string) string {
	if rel, err := filepath.Rel(r.root, path); err == nil {
		path = rel
	}
	return filepath.ToSlash(path)
}

// read returns the content of a file that is relative to the root.
func (r *repo) read(path string) (string, error) {
	text, err := os.ReadFile(r.absolute(path))
	return string(text), err
}

// exists reports whether the repository has a file or folder.
func (r *repo) exists(path string) bool {
	_, err := os.Stat(r.absolute(path))
	return err == nil
}

// glob returns the files that match a pattern with slashes, relative to the root.
func (r *repo) glob(pattern string) ([]string, error) {
	found, err := filepath.Glob(r.absolute(pattern))
	for i, path := range found {
		found[i] = r.relative(path)
	}
	return found, err
}

// parse returns the syntax of a Go file that is relative to the root.
func (r *repo) parse(path string) (*ast.File, error) { return r.parseFile(r.absolute(path)) }

// parseFile parses a file once.
func (r *repo) parseFile(path string) (*ast.File, error) {
	r.mu.Lock()
	p := r.parsed[path]
	if p == nil {
		p = new(parsing)
		r.parsed[path] = p
	}
	r.mu.Unlock()
	p.once.Do(func() {
		p.file, p.err = parser.ParseFile(r.fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	})
	return p.file, p.err
}

// place is the file, relative to the root, and the line of a position.
func (r *repo) place(at token.Pos) (file string, line int) {
	p := r.fset.Position(at)
	return r.relative(p.Filename), p.Line
}

// at is a finding at a position.
func (r *repo) at(pos token.Pos, format string, args ...any) finding {
	file, line := r.place(pos)
	return finding{file, line, fmt.Sprintf(format, args...)}
}

// count counts what a check has examined. A check that examines nothing is an error.
func (r *repo) count(n int) { r.examined += n }

// note adds a line to the figures that -v prints.
func (r *repo) note(format string, args ...any) {
	fmt.Fprintf(&r.notes, "\t"+format+"\n", args...)
}

// takeNotes returns the figures of the last check.
func (r *repo) takeNotes() string {
	defer r.notes.Reset()
	return r.notes.String()
}
