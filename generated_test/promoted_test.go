package generated_test

import (
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestNothingIsPromoted checks that no method of the runtime is promoted into a generated
// type. The Go compiler makes a function for each promoted method of each type; for a
// topology of 100 processors it once made 10,200.
func TestNothingIsPromoted(t *testing.T) {
	list, err := packages.Load(&packages.Config{Mode: packages.LoadTypes | packages.NeedSyntax}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range list {
		for _, name := range p.Types.Scope().Names() {
			named, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
			if !ok || named.IsAlias() || !isGenerated(p.Fset.Position(named.Pos()).Filename) || types.IsInterface(named.Type()) {
				continue
			}
			found++
			methods := types.NewMethodSet(types.NewPointer(named.Type()))
			for i := range methods.Len() {
				m := methods.At(i).Obj()
				if m.Pkg() != p.Types && strings.Contains(m.Pkg().Path(), "/topogen/runtime/") {
					t.Errorf("%s.%s has the method %s of %s", p.PkgPath, name, m.Name(), m.Pkg().Path())
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d generated types were found", found)
	}
}

func isGenerated(path string) bool {
	return strings.HasSuffix(filepath.Base(path), "_gen.go") || filepath.Base(path) == "wiring.go"
}
