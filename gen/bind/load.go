package bind

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"

	"github.com/topogen/topogen/gen/cache"
)

// loader gives the packages that the roots import, one packages.Load for each
// module of roots: from export data, or from source where there is none (it does
// not compile yet) or where it would be stale (it imports a root).
type loader struct {
	fset    *token.FileSet
	env     *environment
	dir     string                       // where the go command runs
	roots   map[string]*root             // by import path
	listed  map[string]*packages.Package // by import path
	source  map[string]bool              // whether a package is checked from source
	checked map[string]*types.Package    // from source, roots aside
	results map[string]*checked          // of the roots
	busy    map[string]bool              // being checked: found again, it is a cycle
	export  map[string]*types.Package    // gcexportdata's own

	wanted    []string            // import paths to list
	generated []string            // packages that generated code imports
	failure   error               // why nothing can be asked of it
	unsound   []*packages.Package // those of listed that have errors

	patience time.Duration

	importedAs map[string]bool // what roots and listed packages import; nil: not looked for yet

	cache *cache.Cache // remembers what was listed; nil: nothing does
}

func newLoader(fset *token.FileSet, env *environment, dir string) *loader {
	return &loader{
		fset:    fset,
		env:     env,
		dir:     dir,
		roots:   make(map[string]*root),
		listed:  make(map[string]*packages.Package),
		source:  make(map[string]bool),
		checked: make(map[string]*types.Package),
		results: make(map[string]*checked),
		busy:    make(map[string]bool),
		export:  make(map[string]*types.Package),

		patience: patience,
	}
}

// list asks the go command for the packages at paths and all that they import.
func (l *loader) list(ctx context.Context, paths []string) error {
	paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return l.listed[path] != nil || l.roots[path] != nil || !single(path) })
	if len(paths) == 0 {
		return nil
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	memory := l.remember(paths)
	if memory.recall() {
		return nil
	}
	env, remove := l.env.apart()
	defer remove()
	env, flags := l.env.buildFlags(env)
	limited, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	config := &packages.Config{
		Context: limited,
		Mode:    packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedExportFile | packages.NeedModule,
		Dir:     l.dir,
		Env:     env,

		BuildFlags: flags,
		Fset:       l.fset,
	}
	list, err := packages.Load(config, paths...)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case limited.Err() != nil:
			return fmt.Errorf("the go command did not list the packages within %v: run \"go list ./...\" to see what it waits for, such as a named pipe among the Go files", l.patience)
		}
		return cannotList(reasonOf(err))
	}
	if len(list) == 0 {
		return cannotList(l.complaint(ctx, paths))
	}
	if p := list[0]; p.PkgPath == adHoc && len(p.Errors) > 0 {
		return cannotList(firstLine(p.Errors[0].Msg))
	}
	for p := range packages.Postorder(list) {
		if l.listed[p.PkgPath] == nil {
			l.listed[p.PkgPath] = p
			if len(p.Errors) > 0 {
				l.unsound = append(l.unsound, p)
			}
		}
	}
	clear(l.source)
	memory.record(list)
	return nil
}

// single reports whether an import path means one package to the go command as
// well: "cmd" is all commands to it, and "file=x" a question about a file. Such a
// path is not listed, and so not found.
func single(path string) bool {
	switch path {
	case "", "all", "cmd", "std", "tool", "work":
		return false
	}
	if strings.HasSuffix(path, ".go") && !strings.Contains(path, "/") {
		return false // a file
	}
	return !strings.Contains(path, "...") && !strings.ContainsAny(path, "=@") && !strings.ContainsAny(path[:1], "-./")
}

// adHoc is the package that go/packages makes of what the go command says where it
// lists nothing because some file or folder is not there. We ask for none.
const adHoc = "command-line-arguments"

func cannotList(why string) error {
	return fmt.Errorf("the go command cannot list packages: %s", why)
}

// reasonOf is what the go command said of itself, out of an error of go/packages.
func reasonOf(err error) string {
	failure, said, _ := strings.Cut(err.Error(), "stderr:")
	if said = firstLine(said); said != "" {
		return said
	}
	return firstLine(strings.TrimPrefix(failure, "err: "))
}

// complaint is why the go command listed nothing at all, which go/packages keeps
// to itself: a go.mod that asks for a newer release, for one.
func (l *loader) complaint(ctx context.Context, paths []string) string {
	command := exec.CommandContext(ctx, "go", slices.Concat([]string{"list", "-export"}, l.env.flags, []string{"--"}, paths)...) // -export wants the build cache too
	command.Dir, command.Env = l.dir, l.env.list
	var stderr strings.Builder
	command.Stderr = &stderr
	err := command.Run()
	switch said := firstLine(stderr.String()); {
	case said != "":
		return said
	case err != nil:
		return err.Error()
	}
	return "it listed nothing and gave no reason"
}

// fromSource reports whether the package at path must be checked from source.
func (l *loader) fromSource(path string) bool {
	if known, ok := l.source[path]; ok {
		return known
	}
	if l.roots[path] != nil {
		return true
	}
	p := l.listed[path]
	if p == nil || path == "unsafe" {
		return false
	}
	l.source[path] = false // an import cycle comes back here
	need := p.ExportFile == ""
	for _, i := range l.importsOf(path) {
		need = l.fromSource(i) || need
	}
	l.source[path] = need
	return need
}

// importsOf lists what the package at path imports, as far as that is known.
func (l *loader) importsOf(path string) []string {
	if r := l.roots[path]; r != nil {
		return r.source.imported()
	}
	var list []string
	if p := l.listed[path]; p != nil {
		for _, i := range p.Imports {
			list = append(list, i.PkgPath)
		}
	}
	return list
}

// reach adds to packages those at paths and all that they import, at any depth.
func (l *loader) reach(packages map[string]bool, paths ...string) map[string]bool {
	for _, path := range paths {
		if !packages[path] {
			packages[path] = true
			l.reach(packages, l.importsOf(path)...)
		}
	}
	return packages
}

// Import implements types.Importer.
func (l *loader) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if l.busy[path] {
		return nil, errors.New("import cycle")
	}
	if p := l.checked[path]; p != nil {
		return p, nil
	}
	if r := l.roots[path]; r != nil {
		return l.checkRoot(r).pkg, nil
	}
	p := l.listed[path]
	if p == nil {
		return nil, errors.New("not found")
	}
	if l.fromSource(path) {
		return l.checkSource(p)
	}
	if p := l.export[path]; p != nil && p.Complete() {
		return p, nil
	}
	return l.readExport(p)
}

func (l *loader) readExport(p *packages.Package) (*types.Package, error) {
	file, err := os.Open(p.ExportFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	//lint:ignore SA1019 the go command of releases before 1.29 writes archives, which Read alone does not take
	data, err := gcexportdata.NewReader(bufio.NewReader(file))
	if err != nil {
		return nil, err
	}
	return gcexportdata.Read(data, l.fset, l.export, p.PkgPath)
}

// checkSource checks the declarations of a package that has no export data. A
// declaration with an error is invalid where it is used; Result.unsound reports the error.
func (l *loader) checkSource(p *packages.Package) (*types.Package, error) {
	if len(p.GoFiles) == 0 {
		return nil, errors.New(l.problem(p.PkgPath))
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		if file, _ := parser.ParseFile(l.fset, name, nil, parser.SkipObjectResolution); file != nil {
			files = append(files, file)
		}
	}
	l.busy[p.PkgPath] = true
	defer delete(l.busy, p.PkgPath)
	config := &types.Config{
		IgnoreFuncBodies: true,
		FakeImportC:      true,
		Importer:         l,
		Sizes:            l.env.sizes(),
		Error:            func(error) {},
	}
	pkg, _ := config.Check(p.PkgPath, l.fset, files, nil)
	l.checked[p.PkgPath] = pkg
	return pkg, nil
}

// problem is why the package at path cannot be loaded; "" if it can.
func (l *loader) problem(path string) string {
	if l.roots[path] != nil || path == "unsafe" {
		return ""
	}
	p := l.listed[path]
	switch {
	case p == nil:
		return "it was not found"
	case len(p.Errors) > 0 && (p.Name == "" || len(p.GoFiles) == 0 && p.ExportFile == ""):
		return firstLine(p.Errors[0].Msg)
	case len(p.GoFiles) == 0 && p.ExportFile == "":
		return "it holds no Go files"
	case len(p.Errors) > 0:
		return mixed(p)
	}
	return ""
}

// folders are those of the packages that may change under us, of those at paths and all
// that they import.
func (l *loader) folders(paths ...string) map[string]bool {
	folders := make(map[string]bool)
	for path := range l.reach(make(map[string]bool), paths...) {
		if r := l.roots[path]; r != nil {
			folders[r.source.dir] = true
		} else if p := l.listed[path]; p != nil && mayChange(p) {
			folders[filepath.Dir(p.GoFiles[0])] = true
		}
	}
	return folders
}

// mayChange reports whether the files of a package may change under us: not those of
// the standard library, nor those that come with a version, unless they are vendored.
func mayChange(p *packages.Package) bool {
	m := origin(p)
	return m != nil && len(p.GoFiles) > 0 &&
		(m.Main || m.Version == "" || strings.Contains(filepath.ToSlash(p.GoFiles[0]), "/vendor/"))
}

// origin is the module that the files of a package come from; nil for the standard
// library.
func origin(p *packages.Package) *packages.Module {
	if m := p.Module; m == nil || m.Replace == nil {
		return m
	}
	return p.Module.Replace
}

const (
	saidLinesMax = 4   // the go command's longest advice
	saidBytesMax = 400 // keeps a finding readable
)

// firstLine is the first line of what a tool says, and after a colon the indented
// lines behind it: what to run, mostly.
func firstLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	said := strings.TrimSpace(lines[0])
	for _, line := range lines[1:min(len(lines), saidLinesMax)] {
		if !strings.HasSuffix(said, ":") && !strings.HasPrefix(line, "\t") || strings.TrimSpace(line) == "" {
			break
		}
		said += " " + strings.TrimSpace(line)
	}
	if len(said) > saidBytesMax {
		said = strings.ToValidUTF8(said[:saidBytesMax], "") + "…"
	}
	return strings.TrimRight(said, ":;")
}
