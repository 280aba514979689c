package lifetime

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// program makes SSA for the functions that handlers may call. Other functions have no body,
// because building them would cost more than the analysis.
func program(p *Package, methods []*types.Func) *ssa.Package {
	keep := reachable(p, methods)
	info := *p.Info
	info.InitOrder = nil // not needed: variables are initialized before any handler call
	info.FileVersions = make(map[*ast.File]string)
	var files []*ast.File
	for _, file := range slices.Concat(p.Files, p.Generated) {
		bare := Bare(file, func(f *ast.FuncDecl) bool { return keep[f] })
		files = append(files, bare)
		info.FileVersions[bare] = p.Info.FileVersions[file]
	}
	prog := ssa.NewProgram(p.Fset, ssa.BareInits)
	for _, imported := range p.Types.Imports() {
		prog.CreatePackage(imported, nil, nil, true)
	}
	pkg := prog.CreatePackage(p.Types, files, &info, false)
	pkg.Build()
	return pkg
}

// Bare returns the file without function bodies, except for the functions for which keep returns true.
func Bare(file *ast.File, keep func(*ast.FuncDecl) bool) *ast.File {
	bare := *file
	bare.Decls = slices.Clone(file.Decls)
	for i, d := range bare.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && !keep(f) {
			head := *f
			head.Body = nil
			bare.Decls[i] = &head
		}
	}
	return &bare
}

// reachable returns the declarations of methods and of the functions that they mention, at
// any depth, without generated functions.
func reachable(p *Package, methods []*types.Func) map[*ast.FuncDecl]bool {
	decls := make(map[types.Object]*ast.FuncDecl)
	for _, file := range p.Files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				decls[p.Info.Defs[f.Name]] = f
			}
		}
	}
	keep := make(map[*ast.FuncDecl]bool)
	var next []*ast.FuncDecl
	add := func(f *types.Func) {
		if d := decls[f.Origin()]; d != nil && !keep[d] {
			keep[d] = true
			next = append(next, d)
		}
	}
	for _, m := range methods {
		add(m)
	}
	for len(next) > 0 {
		d := next[len(next)-1]
		next = next[:len(next)-1]
		ast.Inspect(d.Body, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if f, ok := p.Info.Uses[id].(*types.Func); ok {
					add(f)
				}
			}
			return true
		})
	}
	return keep
}
