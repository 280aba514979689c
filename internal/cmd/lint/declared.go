package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// scope is the file whose declarations are added.
type scope struct {
	*uses
	pkg    *typed
	proto  declaration // the properties of all declarations of the file
	public bool        // users can call its exported names
}

// addFile adds the declarations of a file.
func (u *uses) addFile(p *typed, file *ast.File) {
	name := u.relative(u.fset.Position(file.FileStart).Filename)
	inTests := strings.HasSuffix(name, "_test.go") || slices.ContainsFunc(testFolders, func(f string) bool { return strings.HasPrefix(name, f) })
	generated := ast.IsGenerated(file) // users have such code too
	s := scope{u, p, declaration{
		test:      inTests && !generated,
		input:     strings.HasPrefix(name, "generated_test/") && !strings.HasSuffix(name, "_test.go"),
		generated: generated,
	}, isPublic(p.PkgPath) && !inTests}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				s.addMethod(d)
			} else {
				s.addFunc(d)
			}
		case *ast.GenDecl:
			s.addGroup(d)
		}
	}
}

// addFunc adds a function.
func (s *scope) addFunc(f *ast.FuncDecl) {
	name := f.Name.Name
	d := s.add(f.Name, "function", f)
	d.root = d.root || name == "main" && s.pkg.Name == "main" || s.proto.test && isTest(name)
}

func isTest(name string) bool {
	return slices.ContainsFunc([]string{"Test", "Benchmark", "Fuzz", "Example"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// addMethod adds a method. Its type uses it if an interface or a user may call it. Users can
// have a value of an unexported type, and call its exported methods.
func (s *scope) addMethod(f *ast.FuncDecl) {
	d := s.add(f.Name, "method", f)
	method := s.pkg.TypesInfo.Defs[f.Name].(*types.Func)
	key := s.keyOf(method)
	if key == "" {
		return // of _
	}
	called := (s.public || s.aliased[typeOfMethod(key)]) && f.Name.IsExported()
	d.root = s.proto.generated
	if called || s.interfaces[shape(method)] {
		owner := s.declare(typeOfMethod(key))
		owner.uses = append(owner.uses, key)
	}
}

// addGroup adds constants, variables and types.
func (s *scope) addGroup(group *ast.GenDecl) {
	for _, spec := range group.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.add(spec.Name, "type", spec)
		case *ast.ValueSpec:
			kind := "variable"
			if group.Tok == token.CONST {
				kind = "constant"
			}
			for _, name := range spec.Names {
				s.add(name, kind, spec)
			}
		}
	}
	if group.Tok == token.CONST {
		s.addEnumerations(group)
	}
}

// addEnumerations lets each constant of an enumeration use the others. An enumeration has the
// constants of one type in a group. If a constant repeats the expression of the constant
// before it, all constants of the group are an enumeration.
func (s *scope) addEnumerations(group *ast.GenDecl) {
	enumerations := make(map[string][]string)
	repeats := slices.ContainsFunc(group.Specs, func(spec ast.Spec) bool { return len(spec.(*ast.ValueSpec).Values) == 0 })
	for _, spec := range group.Specs {
		for _, name := range spec.(*ast.ValueSpec).Names {
			obj := s.pkg.TypesInfo.Defs[name]
			key := s.keyOf(obj)
			basic, ok := obj.Type().(*types.Basic)
			if untyped := ok && basic.Info()&types.IsUntyped != 0; key == "" || untyped && !repeats {
				continue
			}
			of := ""
			if !repeats {
				of = obj.Type().String()
			}
			enumerations[of] = append(enumerations[of], key)
		}
	}
	for _, keys := range enumerations {
		for i, key := range keys {
			d := s.declare(key)
			d.uses = append(d.uses, keys[(i+1)%len(keys)])
		}
	}
}

// add adds a declaration with the uses in its code.
func (s *scope) add(name *ast.Ident, kind string, code ast.Node) *declaration {
	key := s.keyOf(s.pkg.TypesInfo.Defs[name])
	anonymous := key == "" || name.Name == "init" && kind == "function" // or assigned to _
	if anonymous {
		key = fmt.Sprint(s.fset.Position(name.Pos()))
	}
	d := s.declare(key)
	d.kind, d.test, d.input, d.generated = kind, s.proto.test, s.proto.input, s.proto.generated
	d.root = anonymous || s.proto.generated || s.public && name.IsExported()
	if !anonymous {
		d.name = name
	}
	ast.Inspect(code, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if key := s.keyOf(s.pkg.TypesInfo.Uses[id]); key != "" {
				d.uses = append(d.uses, key)
			}
		}
		return true
	})
	return d
}
