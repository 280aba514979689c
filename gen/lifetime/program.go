package lifetime

import (
	"go/ast"
	"go/types"
	"maps"

	"golang.org/x/tools/go/ssa"
)

// program makes SSA of the functions that may be called on behalf of handlers.
// All others are left without a body, as building them would cost more than the
// analysis.
func program(p *Package, methods []*types.Func) *ssa.Package {
	keep := reachable(p, methods)
	info := *p.Info
	info.InitOrder = nil // variables are initialized before anything is handled
	info.FileVersions = maps.Clone(p.Info.FileVersions)
	files := make([]*ast.File, len(p.Files))
	for i, file := range p.Files {
		c := *file
		c.Decls = make([]ast.Decl, len(file.Decls))
		for j, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && !keep[f] {
				bare := *f
				bare.Body = nil
				d = &bare
			}
			c.Decls[j] = d
		}
		files[i] = &c
		if info.FileVersions != nil {
			info.FileVersions[&c] = p.Info.FileVersions[file]
		}
	}
	prog := ssa.NewProgram(p.Fset, ssa.BareInits)
	for _, imported := range p.Types.Imports() {
		prog.CreatePackage(imported, nil, nil, true)
	}
	pkg := prog.CreatePackage(p.Types, files, &info, false)
	pkg.Build()
	return pkg
}

// reachable are the declarations of methods and of what they mention, at any
// depth, but for generated ones.
func reachable(p *Package, methods []*types.Func) map[*ast.FuncDecl]bool {
	decls := make(map[types.Object]*ast.FuncDecl)
	for _, file := range p.Files {
		if p.Generated[file] {
			continue
		}
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
