package main

import (
	"fmt"
	"go/ast"
	"go/types"
)

// wellKnown are the shapes of methods that the standard library calls by interfaces of packages
// that no package here imports.
var wellKnown = []string{"Is/1/1", "As/1/1", "Unwrap/0/1", "MarshalText/0/2", "UnmarshalText/1/1"}

// interfaceMethods returns the shapes of the methods of all interfaces of the module and of
// the packages that it imports.
func interfaceMethods(list []*typed) map[string]bool {
	methods := make(map[string]bool)
	for _, method := range wellKnown {
		methods[method] = true
	}
	add := func(t types.Type) {
		if i, ok := t.Underlying().(*types.Interface); ok {
			for m := range i.Methods() {
				methods[shape(m)] = true
			}
		}
	}
	imported := make(map[*types.Package]bool)
	for _, p := range list {
		if p.TypesInfo == nil {
			continue
		}
		for e, value := range p.TypesInfo.Types {
			if _, ok := e.(*ast.InterfaceType); ok {
				add(value.Type)
			}
		}
		for _, other := range p.Types.Imports() {
			if imported[other] {
				continue
			}
			imported[other] = true
			for _, name := range other.Scope().Names() {
				if t, ok := other.Scope().Lookup(name).(*types.TypeName); ok {
					add(t.Type())
				}
			}
		}
	}
	return methods
}

// shape is the name of a method and how many parameters and results it has. Types are not
// compared, because those of generic interfaces depend on their arguments.
func shape(f *types.Func) string {
	return fmt.Sprintf("%s/%d/%d", f.Name(), f.Signature().Params().Len(), f.Signature().Results().Len())
}
