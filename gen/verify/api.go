package verify

import (
	"embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"sync"

	"github.com/topogen/topogen/gen/emit"
)

// api declares, package by package, what generated code uses.
//
//go:embed api/*.txt
var api embed.FS

// known imports the packages in api, and "unsafe".
func known() types.Importer { return apiPackages() }

// apiPackages are shared: nothing changes them.
var apiPackages = sync.OnceValue(func() importer {
	ready := make(importer)
	for _, path := range declared() {
		if _, err := ready.load(path); err != nil {
			panic(fmt.Sprintf("verify: %v", err)) // it is part of the program
		}
	}
	return ready
})

// declared are the packages in api: all but those of processes, logs and several
// hosts, where types are always real ones.
func declared() []string { return append(emit.Imports(), emit.MachineImports(false)...) }

type importer map[string]*types.Package

func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if p := i[path]; p != nil {
		return p, nil
	}
	return nil, errors.New("not known")
}

// load checks a package of api after those that it imports.
func (i importer) load(importPath string) (*types.Package, error) {
	if p := i[importPath]; p != nil {
		return p, nil
	}
	name := "api/" + path.Base(importPath) + ".txt"
	source, err := api.ReadFile(name)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	config := &types.Config{Importer: loading{i}, IgnoreFuncBodies: true}
	p, err := config.Check(importPath, fset, []*ast.File{file}, nil)
	if err == nil {
		i[importPath] = p
	}
	return p, err
}

// loading is an importer that loads what is missing.
type loading struct{ importer }

func (l loading) Import(path string) (*types.Package, error) { return l.load(path) }
