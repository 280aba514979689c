package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/tools/go/packages"
)

// typed is a package of the module whose types have been checked, or the same package with
// its tests.
type typed struct {
	PkgPath   string
	Name      string
	Types     *types.Package
	TypesInfo *types.Info // nil: its files are also in a package with tests, which has it
	Syntax    []*ast.File
	tests     bool
}

// checker checks the types of the packages of the module from their source. So it needs the
// build cache only for other modules, and a change of a package compiles nothing.
type checker struct {
	*repo
	external map[string]*types.Package
	full     map[*packages.Package]bool // packages whose functions are checked too
	checked  map[*packages.Package]*checking
}

// checking is the check of a package, which happens once.
type checking struct {
	once sync.Once
	typed
	err error
}

// loadPackages checks the types of all packages of the module and of their tests.
func (r *repo) loadPackages() ([]*typed, error) {
	start := time.Now()
	list, err := r.list()
	if err != nil {
		return nil, err
	}
	c := &checker{repo: r, full: fullPackages(list), checked: make(map[*packages.Package]*checking)}
	packages.Visit(list, nil, func(p *packages.Package) { c.checked[p] = new(checking) })
	if c.external, err = r.loadExternal(list); err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(slices.Clone(list), isTestMain)
	c.checkAll(list)
	var all []*typed
	for _, p := range list {
		if err := c.checked[p].err; err != nil {
			return nil, err
		}
		all = append(all, &c.checked[p].typed)
	}
	r.note("the types of %d packages took %.2f s, and are shared with the next check", len(all), time.Since(start).Seconds())
	return all, nil
}

// fullPackages returns the packages that have files of no other package. A package with its
// tests also has the files of the package.
func fullPackages(list []*packages.Package) map[*packages.Package]bool {
	largest := make(map[string]*packages.Package)
	for _, p := range list {
		if old := largest[p.PkgPath]; old == nil || len(p.GoFiles) > len(old.GoFiles) {
			largest[p.PkgPath] = p
		}
	}
	full := make(map[*packages.Package]bool)
	for _, p := range largest {
		full[p] = true
	}
	return full
}

// loadExternal returns the types of the packages of other modules that this module imports.
func (r *repo) loadExternal(list []*packages.Package) (map[string]*types.Package, error) {
	external := map[string]*types.Package{"unsafe": types.Unsafe}
	var paths []string
	packages.Visit(list, nil, func(p *packages.Package) {
		if !isOwn(p) || isTestMain(p) {
			return
		}
		for _, other := range p.Imports {
			if !isOwn(other) && external[other.PkgPath] == nil && !slices.Contains(paths, other.PkgPath) {
				paths = append(paths, other.PkgPath)
			}
		}
	})
	if len(paths) == 0 {
		return external, nil
	}
	loaded, err := packages.Load(&packages.Config{Dir: r.root, Fset: r.fset, Mode: packages.NeedName | packages.NeedImports | packages.NeedTypes | packages.NeedTypesSizes}, paths...)
	for _, p := range loaded {
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
		external[p.PkgPath] = p.Types
	}
	return external, err
}

// checkAll checks packages on all processors.
func (c *checker) checkAll(list []*packages.Package) {
	work := make(chan *packages.Package)
	var done sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		done.Go(func() {
			for p := range work {
				c.check(p)
			}
		})
	}
	for _, p := range list {
		work <- p
	}
	close(work)
	done.Wait()
}

// check checks a package after the packages that it imports.
func (c *checker) check(p *packages.Package) *checking {
	result := c.checked[p]
	result.once.Do(func() {
		result.PkgPath, result.Name, result.tests = p.PkgPath, p.Name, isTestVariant(p)
		for _, name := range p.GoFiles {
			file, err := c.parseFile(name)
			if err != nil {
				result.err = err
				return
			}
			result.Syntax = append(result.Syntax, file)
		}
		if c.full[p] {
			result.TypesInfo = &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)}
		}
		config := types.Config{
			Importer: c.importer(p), Sizes: types.SizesFor("gc", runtime.GOARCH), IgnoreFuncBodies: !c.full[p],
			Error: func(error) {}, // after the first error the check continues, for packages that import this one
		}
		result.Types, result.err = config.Check(p.PkgPath, c.fset, result.Syntax, result.TypesInfo)
	})
	return result
}

// importer finds the types of the packages that p imports.
func (c *checker) importer(p *packages.Package) importerFunc {
	return func(path string) (*types.Package, error) {
		imported := p.Imports[path]
		if path == "unsafe" {
			return types.Unsafe, nil
		}
		if imported == nil {
			return nil, fmt.Errorf("%s does not list the import of %s", p.ID, path)
		}
		if !isOwn(imported) {
			return c.external[imported.PkgPath], nil
		}
		return c.check(imported).Types, nil // its errors are reported once, for the package itself
	}
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
