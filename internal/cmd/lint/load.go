package main

import (
	"errors"
	"go/ast"
	"go/token"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"
)

// graph has the imports of each package, without the imports of tests.
type graph map[string][]string

// loadGraph lists the packages of the module and everything that they import.
func (r *repo) loadGraph() (graph, error) {
	list, err := packages.Load(&packages.Config{Dir: r.root, Mode: packages.LoadImports | packages.NeedDeps}, "./...")
	if err != nil {
		return nil, err
	}
	g := make(graph)
	packages.Visit(list, nil, func(p *packages.Package) {
		g[p.PkgPath] = []string{}
		for path := range p.Imports {
			g[p.PkgPath] = append(g[p.PkgPath], path)
		}
	})
	return g, nil
}

// closure has the packages that a program links.
func (g graph) closure(program string) map[string]bool {
	linked := map[string]bool{program: true}
	for open := []string{program}; len(open) > 0; {
		next := open[len(open)-1]
		open = open[:len(open)-1]
		for _, path := range g[next] {
			if !linked[path] {
				linked[path] = true
				open = append(open, path)
			}
		}
	}
	return linked
}

// typed is a package of the module whose types have been checked, or the same package with
// its tests.
type typed struct {
	*packages.Package
	tests bool
}

// loadPackages checks the types of all packages of the module and of their tests. Packages
// of other modules are read from the build cache.
func (r *repo) loadPackages() ([]*typed, error) {
	start := time.Now()
	list, err := packages.Load(&packages.Config{
		Dir: r.root, Fset: r.fset, Tests: true,
		Mode:      packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo,
		ParseFile: func(_ *token.FileSet, path string, text []byte) (*ast.File, error) { return r.parseFile(path, text) },
	}, "./...")
	if err != nil {
		return nil, err
	}
	var all []*typed
	var failures []error
	for _, p := range list {
		for _, e := range p.Errors {
			failures = append(failures, e)
		}
		if !strings.HasSuffix(p.PkgPath, ".test") { // the main package of a test program
			all = append(all, &typed{p, p.ID != p.PkgPath})
		}
	}
	r.note("loading %d packages took %.2f s, which the next check does not need again", len(all), time.Since(start).Seconds())
	return all, errors.Join(failures...)
}
