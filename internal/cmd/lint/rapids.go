package main

import (
	"go/ast"
	"strings"
)

// rapids finds tests that call rapid.Check without speed.Checks in the same function. Such a
// test has other inputs in each quick run, and the same amount at each speed.
func rapids(r *repo) (found []finding, err error) {
	paths, err := r.paths()
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := r.parse(path)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			call := callOf(f, "rapid", "Check")
			if call == nil {
				continue
			}
			r.count(1)
			if callOf(f, "speed", "Checks") == nil {
				found = append(found, r.at(call.Pos(), "call speed.Checks before rapid.Check: a quick run must have the same inputs each time"))
			}
		}
	}
	return found, nil
}

// callOf returns the first call of a function of a package in f, or nil.
func callOf(f *ast.FuncDecl, pkg, name string) (first *ast.CallExpr) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || first != nil {
			return first == nil
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == name {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg {
				first = call
			}
		}
		return first == nil
	})
	return first
}
