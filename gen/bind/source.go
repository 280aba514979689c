package bind

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/topogen/topogen/gen/header"
	"github.com/topogen/topogen/gen/lifetime"
)

// sourceBytesMax bounds the size of a Go file. Its syntax tree needs ten times as much memory.
const sourceBytesMax = 64 << 20

// source has the user's Go files of a package, without generated files. Tests and files
// that build constraints exclude are in a separate list.
type source struct {
	dir    string
	files  []*ast.File
	names  []string // absolute, like files
	texts  map[string][]byte
	errors scanner.ErrorList // the first syntax error of each file

	excluded      []*excludedFile          // Go files that this build does not compile
	excludedNames map[string]*excludedFile // the names that they declare; nil until needed
	generated     []generatedFile          // files of this package that topogen has generated
}

// generatedFile is a file of the package that topogen has generated.
type generatedFile struct {
	name, source string // source is the topology file, relative to the package's folder
	output       bool   // it is an output of this topology
}

// readSource reads the package in dir. A folder that does not exist has no files. A symbolic
// link in the place of an output does not count as a file of the package, because writing an
// output does not follow it either.
func readSource(fset *token.FileSet, dir string, env *environment, outputs ...string) (*source, error) {
	s := &source{dir: dir, texts: make(map[string][]byte)}
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	context := env.context(func(name string) (io.ReadCloser, error) { return openBytes(s.texts[name]), nil })
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.ContainsAny(name[:1], "_.") {
			continue
		}
		if entry.Type()&fs.ModeSymlink != 0 && slices.Contains(outputs, name) {
			continue
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			continue // a link to a folder
		}
		test := strings.HasSuffix(name, "_test.go")
		text, err := readRegular(file)
		if err != nil && test {
			continue // the go command reports the error when it runs the tests
		}
		if err != nil {
			return nil, err
		}
		if header.Is(text) {
			if h, ok := header.Read(text); ok {
				s.generated = append(s.generated, generatedFile{name, h.Source, slices.Contains(outputs, name)})
			}
			continue
		}
		if test {
			s.excluded = append(s.excluded, &excludedFile{name: file, text: text, test: true})
			continue
		}
		s.texts[file] = text
		// A file whose header does not parse counts as a match, so that its errors are reported.
		if match, err := context.MatchFile(dir, name); err == nil && !match {
			delete(s.texts, file)
			s.excluded = append(s.excluded, &excludedFile{name: file, text: text})
			continue
		}
		s.names = append(s.names, file)
	}
	s.parse(fset, context.CgoEnabled, outputs)
	return s, nil
}

// unbounded is the error for a file that might have no end.
type unbounded string

func (e unbounded) Error() string { return string(e) }

// readRegular reads a regular file. It refuses pipes, which may block, and devices, which may
// have no end.
func readRegular(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder", filepath.Base(file))
	case !info.Mode().IsRegular():
		return nil, unbounded(filepath.Base(file) + " is not a regular file")
	case info.Size() > sourceBytesMax:
		return nil, unbounded(fmt.Sprintf("%s has more than %d bytes", filepath.Base(file), sourceBytesMax))
	}
	if info.Size() == 0 { // an empty file, or a file of the kernel, which may block
		return nil, nil
	}
	return os.ReadFile(file)
}

// parse parses the files in parallel. It leaves out an output that does not parse, for example an
// empty file: package write reports it, as any output that topogen must not overwrite.
func (s *source) parse(fset *token.FileSet, cgo bool, outputs []string) {
	files := make([]*ast.File, len(s.names))
	errors := make([]error, len(s.names))
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, name := range s.names {
		slots <- struct{}{}
		group.Go(func() {
			files[i], errors[i] = parser.ParseFile(fset, name, s.texts[name], parser.SkipObjectResolution)
			<-slots
		})
	}
	group.Wait()
	names := s.names[:0]
	for i, file := range files {
		if errors[i] != nil && slices.Contains(outputs, filepath.Base(s.names[i])) {
			continue
		}
		if list, ok := errors[i].(scanner.ErrorList); ok && len(list) > 0 {
			first := list[0] // later errors usually follow from the first
			first.Pos = unadjusted(fset, file, first.Pos.Offset)
			s.errors = append(s.errors, first)
		}
		if file == nil || file.Name == nil || !file.Name.Pos().IsValid() {
			continue // empty, or without a package clause, which is among the errors
		}
		if file.Name.Name == "documentation" {
			continue // the go command ignores such a file
		}
		if !cgo && imports(file, "C") {
			s.excluded = append(s.excluded, &excludedFile{name: s.names[i], text: s.texts[s.names[i]], cgo: true})
			continue
		}
		names = append(names, s.names[i])
		s.files = append(s.files, file)
	}
	s.names = names
}

// unadjusted is a position in a file that ignores //line directives, which may name any file
// and line.
func unadjusted(fset *token.FileSet, file *ast.File, offset int) token.Position {
	f := fset.File(file.FileStart)
	return f.PositionFor(f.Pos(min(offset, f.Size())), false)
}

func imports(file *ast.File, path string) bool {
	for _, i := range file.Imports {
		if i.Path.Value == strconv.Quote(path) {
			return true
		}
	}
	return false
}

// imported lists the import paths of the files, each once.
func (s *source) imported() []string { return imported(s.files) }

func imported(files []*ast.File) []string {
	var list []string
	seen := map[string]bool{"C": true, "unsafe": true}
	for _, file := range files {
		for _, i := range file.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err == nil && !seen[path] {
				seen[path] = true
				list = append(list, path)
			}
		}
	}
	return list
}

// declared maps each name at package level to its declaration.
func declared(files []*ast.File) map[string]*ast.Ident {
	names := make(map[string]*ast.Ident)
	for _, file := range files {
		for id, receiver := range declarations(file, true) {
			if receiver == "" && names[id.Name] == nil && id.Name != "_" && id.Name != "init" {
				names[id.Name] = id
			}
		}
	}
	return names
}

// declarations are the names that a file declares, each with its receiver type: "?" for a
// receiver without a name, "" for functions and types. Variables and constants are included
// only if values is set.
func declarations(file *ast.File, values bool) iter.Seq2[*ast.Ident, string] {
	return func(yield func(*ast.Ident, string) bool) {
		for _, d := range file.Decls {
			var names []*ast.Ident
			receiver := ""
			switch d := d.(type) {
			case *ast.FuncDecl:
				names = []*ast.Ident{d.Name}
				if d.Recv != nil {
					receiver = "?"
					for _, r := range d.Recv.List {
						receiver = lifetime.TypeName(r.Type)
					}
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names = append(names, spec.Name)
					case *ast.ValueSpec:
						if values {
							names = append(names, spec.Names...)
						}
					}
				}
			}
			for _, id := range names {
				if !yield(id, receiver) {
					return
				}
			}
		}
	}
}
