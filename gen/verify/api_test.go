package verify

import (
	"go/types"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestAPI holds api against the real packages: whatever it declares, they do.
func TestAPI(t *testing.T) {
	list, err := packages.Load(&packages.Config{Mode: packages.LoadTypes}, declared()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, real := range list {
		have, err := known().Import(real.PkgPath)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, name := range have.Scope().Names() {
			object := have.Scope().Lookup(name)
			if !object.Exported() {
				continue
			}
			compareObjects(t, real.PkgPath+"."+name, object, real.Types.Scope().Lookup(name))
		}
	}
}

func compareObjects(t *testing.T, name string, have, want types.Object) {
	t.Helper()
	if want == nil {
		t.Errorf("%s does not exist", name)
		return
	}
	named, ok := types.Unalias(have.Type()).(*types.Named)
	if _, isType := have.(*types.TypeName); !ok || !isType {
		if text(have.Type()) != text(want.Type()) {
			t.Errorf("%s is %s, not %s", name, text(want.Type()), text(have.Type()))
		}
		return
	}
	real, ok := types.Unalias(want.Type()).(*types.Named)
	if !ok || text(named.TypeParams()) != text(real.TypeParams()) {
		t.Errorf("%s is %s", name, want)
		return
	}
	methods := types.NewMethodSet(types.NewPointer(real))
	for f := range named.Methods() {
		m := methods.Lookup(nil, f.Name())
		if m == nil {
			t.Errorf("%s has no method %s", name, f.Name())
		} else if text(f.Signature()) != text(m.Type()) {
			t.Errorf("%s.%s is %s, not %s", name, f.Name(), text(m.Type()), text(f.Signature()))
		}
	}
	fields, ok := named.Underlying().(*types.Struct)
	if !ok {
		if _, isSignature := named.Underlying().(*types.Signature); !isSignature && text(named.Underlying()) != text(real.Underlying()) {
			t.Errorf("%s is %s, not %s", name, text(real.Underlying()), text(named.Underlying()))
		}
		return
	}
	for f := range fields.Fields() {
		object, _, _ := types.LookupFieldOrMethod(real, true, nil, f.Name())
		if object == nil || text(object.Type()) != text(f.Type()) {
			t.Errorf("%s.%s is %v, not %s", name, f.Name(), object, text(f.Type()))
		}
	}
}

// text is a type without the names of parameters, which are nobody's business.
func text(v any) string {
	switch v := v.(type) {
	case *types.Signature:
		return "func(" + text(v.Params()) + ") (" + text(v.Results()) + ")"
	case *types.Tuple:
		var list []string
		for p := range v.Variables() {
			list = append(list, text(p.Type()))
		}
		return strings.Join(list, ", ")
	case *types.TypeParamList:
		var list []string
		for p := range v.TypeParams() {
			list = append(list, p.String()+" "+p.Constraint().String())
		}
		return strings.Join(list, ", ")
	case types.Type:
		return types.TypeString(v, (*types.Package).Path)
	}
	panic("no type")
}
