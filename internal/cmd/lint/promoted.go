package main

import (
	"go/types"
	"path"
	"strings"
)

// promoted finds methods of the runtime that are promoted into a generated type. The Go
// compiler makes a function for each promoted method of each type; for a topology of 100
// processors it once made 10,200.
func promoted(r *repo) (found []finding, err error) {
	list, err := r.packages()
	if err != nil {
		return nil, err
	}
	checked := 0
	for _, p := range list {
		if p.tests {
			continue
		}
		for _, name := range p.Types.Scope().Names() {
			named, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
			if !ok || named.IsAlias() || types.IsInterface(named.Type()) {
				continue
			}
			if file, _ := r.place(named.Pos()); !isGenerated(file) {
				continue
			}
			checked++
			found = append(found, r.promotedInto(named)...)
		}
	}
	r.count(checked)
	r.note("%d generated types", checked)
	return found, nil
}

func (r *repo) promotedInto(named *types.TypeName) (found []finding) {
	methods := types.NewMethodSet(types.NewPointer(named.Type()))
	for i := range methods.Len() {
		m := methods.At(i).Obj()
		if m.Pkg() != nil && m.Pkg() != named.Pkg() && strings.Contains(m.Pkg().Path(), "/topogen/runtime/") {
			found = append(found, r.at(named.Pos(), "%s must not have the method %s of %s: generate a field with a name instead of an embedded field", named.Name(), m.Name(), m.Pkg().Path()))
		}
	}
	return found
}

func isGenerated(file string) bool {
	return strings.HasSuffix(file, "_gen.go") || path.Base(file) == "wiring.go"
}
