package main

import (
	"go/ast"
	"path"
	"strings"
)

// addNames reads the Go files without types: files of other modules, such as bench, and files
// that this build excludes. A name after a dot uses each declaration of that name. Other
// names use the declarations of the same folder.
func (u *uses) addNames(typed map[string]bool) error {
	paths, err := u.paths()
	if err != nil {
		return err
	}
	selected := make(map[string]*declaration)
	plain := make(map[string]*declaration) // by folder and name
	for _, file := range paths {
		if path.Ext(file) != ".go" || typed[u.absolute(file)] {
			continue
		}
		syntax, err := u.parse(file)
		if err != nil {
			return err
		}
		user := u.declare(file)
		user.root, user.test = true, strings.HasSuffix(file, "_test.go")
		ast.Inspect(syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				selected[n.Sel.Name] = stronger(selected[n.Sel.Name], user)
			case *ast.Ident:
				key := path.Dir(file) + "." + n.Name
				plain[key] = stronger(plain[key], user)
			}
			return true
		})
	}
	for key, d := range u.declared {
		if d.name == nil {
			continue
		}
		file, _ := u.place(d.name.Pos())
		for _, user := range []*declaration{selected[d.name.Name], plain[path.Dir(file)+"."+d.name.Name]} {
			if user != nil {
				user.uses = append(user.uses, key)
			}
		}
	}
	return nil
}

// stronger returns a user that is not a test, if there is one.
func stronger(a, b *declaration) *declaration {
	if a == nil || a.test {
		return b
	}
	return a
}
