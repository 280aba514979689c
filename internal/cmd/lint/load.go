package main

import (
	"errors"
	"strings"

	"golang.org/x/tools/go/packages"
)

// graph has the imports of each package, without the imports of tests.
type graph map[string][]string

// loadList lists the packages of the module with their tests, and everything that they import.
func (r *repo) loadList() ([]*packages.Package, error) {
	list, err := packages.Load(&packages.Config{Dir: r.root, Tests: true, Mode: packages.LoadImports | packages.NeedDeps}, "./...")
	if err != nil {
		return nil, err
	}
	var failures []error
	packages.Visit(list, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			failures = append(failures, e)
		}
	})
	return list, errors.Join(failures...)
}

// loadGraph returns the imports of the packages.
func (r *repo) loadGraph() (graph, error) {
	list, err := r.list()
	if err != nil {
		return nil, err
	}
	g := make(graph)
	packages.Visit(list, nil, func(p *packages.Package) {
		if isTestVariant(p) {
			return
		}
		g[p.PkgPath] = []string{}
		for path := range p.Imports {
			g[p.PkgPath] = append(g[p.PkgPath], path)
		}
	})
	return g, nil
}

// isTestVariant reports whether a package has tests, or imports a package with its tests.
func isTestVariant(p *packages.Package) bool { return p.ID != p.PkgPath || isTestMain(p) }

// isTestMain reports whether a package is the generated main package of a test program.
func isTestMain(p *packages.Package) bool { return strings.HasSuffix(p.PkgPath, ".test") }

// isOwn reports whether a package belongs to this module.
func isOwn(p *packages.Package) bool { return strings.HasPrefix(p.PkgPath, module) }

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
