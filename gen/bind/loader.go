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

// loader loads the packages that the roots import, with one packages.Load for each module
// of roots. It reads export data. It reads a package from source if there is no export data
// (the package does not compile yet), or if export data would be stale (it imports a root).
type loader struct {
	fset       *token.FileSet
	env        *environment
	dir        string                       // where the go command runs
	roots      map[string]*root             // by import path
	listed     map[string]*packages.Package // by import path
	source     map[string]bool              // whether a package is checked from source
	checked    map[string]*types.Package    // packages checked from source, without roots
	fakeC      map[string]bool              // whether a package checked from source imports "C"
	results    map[string]*checked          // results for the roots
	inProgress map[string]bool              // packages whose check is in progress; importing one is a cycle
	export     map[string]*types.Package    // packages that gcexportdata has read

	wanted           []string            // import paths to list
	generated        []string            // packages that generated code imports
	failure          error               // why the loader cannot be used
	dependencyErrors []*packages.Package // listed packages with errors

	timeout time.Duration

	importedAs map[string]bool // imports of roots and listed packages; nil: not collected yet

	cache *cache.Cache // keeps answers of the go command; nil: there is no cache
}

func newLoader(fset *token.FileSet, env *environment, dir string) *loader {
	return &loader{
		fset:       fset,
		env:        env,
		dir:        dir,
		roots:      make(map[string]*root),
		listed:     make(map[string]*packages.Package),
		source:     make(map[string]bool),
		checked:    make(map[string]*types.Package),
		fakeC:      make(map[string]bool),
		results:    make(map[string]*checked),
		inProgress: make(map[string]bool),
		export:     make(map[string]*types.Package),

		timeout: goTimeout,
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
	env, remove := l.env.withTempFolder()
	defer remove()
	env, flags := l.env.buildFlags(env)
	limited, cancel := context.WithTimeout(ctx, l.timeout)
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
			return fmt.Errorf("the go command did not list the packages within %v: run \"go list ./...\" to see what it waits for, such as a named pipe among the Go files", l.timeout)
		}
		return l.cannotList(reasonOf(err))
	}
	if len(list) == 0 {
		return l.cannotList(l.complaint(ctx, paths))
	}
	if p := list[0]; p.PkgPath == commandLinePackage && len(p.Errors) > 0 {
		return l.cannotList(firstLine(p.Errors[0].Msg))
	}
	for p := range packages.Postorder(list) {
		if l.listed[p.PkgPath] == nil {
			l.listed[p.PkgPath] = p
			if len(p.Errors) > 0 {
				l.dependencyErrors = append(l.dependencyErrors, p)
			}
		}
	}
	clear(l.source)
	memory.record(list)
	return nil
}

// single reports whether an import path means exactly one package to the go command:
// "cmd" means all commands, "file=x" the package of a file. Other paths are not listed,
// so they are reported as not found.
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

// commandLinePackage is the package that go/packages invents for an error of the go command
// that is not about a package. The loader never requests it.
const commandLinePackage = "command-line-arguments"

func (l *loader) cannotList(why string) error {
	if strings.Contains(why, "inconsistent vendoring") {
		_, command := l.vendor()
		why += "; run " + command
	}
	return fmt.Errorf("the go command cannot list packages: %s", why)
}

// reasonOf extracts the message of the go command from an error of go/packages.
func reasonOf(err error) string {
	failure, stderr, _ := strings.Cut(err.Error(), "stderr:")
	if line := firstLine(stderr); line != "" {
		return line
	}
	return firstLine(strings.TrimPrefix(failure, "err: "))
}

// complaint is the reason why the go command listed nothing, such as a go.mod that needs a
// newer Go release. go/packages does not return the reason, so complaint runs the command.
func (l *loader) complaint(ctx context.Context, paths []string) string {
	command := exec.CommandContext(ctx, "go", slices.Concat([]string{"list", "-export"}, l.env.flags, []string{"--"}, paths)...) // -export also needs the build cache
	command.Dir, command.Env = l.dir, l.env.list
	var stderr strings.Builder
	command.Stderr = &stderr
	err := command.Run()
	switch line := firstLine(stderr.String()); {
	case line != "":
		return line
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
	l.source[path] = false // ends the recursion in an import cycle
	need := p.ExportFile == ""
	for _, i := range l.importsOf(path) {
		need = l.fromSource(i) || need
	}
	l.source[path] = need
	return need
}

// importsOf lists the known imports of the package at path.
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

// reach adds the packages at paths, and all their imports at any depth, to packages.
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
	if l.inProgress[path] {
		return nil, errors.New("import cycle")
	}
	if p := l.checked[path]; p != nil {
		return p, nil
	}
	if r := l.roots[path]; r != nil && r.verified != nil {
		return r.verified, nil
	} else if r != nil {
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

// checkSource checks the declarations of a package that has no export data. Uses of a
// declaration with an error are invalid; Result.dependencyErrors reports the error.
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
	l.fakeC[p.PkgPath] = slices.ContainsFunc(files, importsC)
	l.inProgress[p.PkgPath] = true
	defer delete(l.inProgress, p.PkgPath)
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
		return mixedPackages(p)
	}
	return ""
}

// folders returns the folders of the packages at paths and of all their imports, but only of
// packages whose files may change.
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

// mayChange reports whether the files of a package may change. Files of the standard library
// and of versioned modules do not change, unless they are vendored.
func mayChange(p *packages.Package) bool {
	m := origin(p)
	return m != nil && len(p.GoFiles) > 0 &&
		(m.Main || m.Version == "" || strings.Contains(filepath.ToSlash(p.GoFiles[0]), "/vendor/"))
}

// origin is the module that contains the files of a package; nil for the standard library.
func origin(p *packages.Package) *packages.Module {
	if m := p.Module; m == nil || m.Replace == nil {
		return m
	}
	return p.Module.Replace
}

const (
	firstLineRunsMax  = 4   // lines of the longest advice of the go command
	firstLineBytesMax = 400 // keeps a finding readable
)

// firstLine is the first line of a tool's output. If the line ends with a colon, the indented
// lines after it follow; they usually say what to run.
func firstLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	first := strings.TrimSpace(lines[0])
	for _, line := range lines[1:min(len(lines), firstLineRunsMax)] {
		if !strings.HasSuffix(first, ":") && !strings.HasPrefix(line, "\t") || strings.TrimSpace(line) == "" {
			break
		}
		first += " " + strings.TrimSpace(line)
	}
	if len(first) > firstLineBytesMax {
		first = strings.ToValidUTF8(first[:firstLineBytesMax], "") + "…"
	}
	return strings.TrimRight(first, ":;")
}
