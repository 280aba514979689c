package bind

import (
	"fmt"
	"go/types"
	"slices"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// constructor binds the function under new: and the configuration under with:.
func (b *binder) constructor(s *subject) {
	if s.file.New.Value == "" {
		return // instances are zero values; package spec refuses with: without new:
	}
	with := s.file.With
	f := b.newFunction(s)
	if f == nil {
		return
	}
	sig := b.instantiate(s, f)
	if sig == nil {
		return
	}
	c := &plan.Constructor{Import: s.Type.Import, Func: f.Name(), Args: b.constructorArgs(s, f)}
	config, problem := b.shape(s, sig, c)
	if problem != "" {
		b.unfitNew(s, f, problem)
		return
	}
	if config == nil {
		if with != nil {
			b.at(finding.Config, spec.Text{At: with.At, Pointer: with.Pointer}, "remove with, or give the function a last parameter: a struct with a field for each key", "with is passed to the function %s, which takes no configuration", f.Name())
			return
		}
	} else if c.Config = b.configuration(s, f, config); c.Config == nil {
		return
	}
	s.New = c
}

// newFunction finds the function under new: in the package of the type.
func (b *binder) newFunction(s *subject) *types.Func {
	at, name := s.file.New, s.file.New.Value
	pkg := b.packageAt(s.Type.Import)
	if pkg == nil {
		return nil // the type has a finding already
	}
	object := pkg.Scope().Lookup(name)
	if object == nil {
		var names []string
		for _, n := range pkg.Scope().Names() {
			if f, ok := pkg.Scope().Lookup(n).(*types.Func); ok && (f.Exported() || pkg == b.checked.pkg) {
				names = append(names, n)
			}
		}
		b.at(finding.Constructor, at, b.undeclaredNew(s, names), "function %s is not declared in package %s", name, pkg.Name())
		return nil
	}
	f, ok := object.(*types.Func)
	switch {
	case !ok:
		b.at(finding.Constructor, at, "", "%s of package %s is not a function", name, pkg.Name())
		return nil
	case !f.Exported() && pkg != b.checked.pkg:
		b.at(finding.Constructor, at, "", "function %s is not exported by package %s", name, pkg.Path())
		return nil
	}
	return f
}

// undeclaredNew is the suggestion for a function that the package lacks. names are the
// names of its functions.
func (b *binder) undeclaredNew(s *subject, names []string) string {
	if where := b.inExcludedFile(s.Type.Import, "", s.file.New.Value); where != "" {
		return where
	}
	if near := b.near.Nearest(s.file.New.Value, names); near != "" {
		return "did you mean " + near + "?"
	}
	c := b.canonicalNew(s)
	if c == nil {
		return ""
	}
	if s.Type.Import != "" || len(s.Type.Args) > 0 {
		return c.suggestion()
	}
	s.missing.New = c
	return c.suggestion() + ScaffoldHint
}

// instantiate gives a generic function the type arguments of the processor's type. Go
// cannot infer them if no parameter uses them.
func (b *binder) instantiate(s *subject, f *types.Func) *types.Signature {
	sig := f.Signature()
	if sig.TypeParams().Len() == 0 {
		return sig
	}
	args := slices.Collect(s.t.(*types.Named).TypeArgs().Types())
	if len(args) == sig.TypeParams().Len() {
		if t, err := types.Instantiate(nil, sig, args, true); err == nil {
			return t.(*types.Signature)
		}
	}
	b.unfitNew(s, f, "must have the type parameters of the type")
	return nil
}

// constructorArgs are the explicit type arguments of the call.
func (b *binder) constructorArgs(s *subject, f *types.Func) []plan.TypeRef {
	if f.Signature().TypeParams().Len() == 0 {
		return nil
	}
	var list []plan.TypeRef
	for t := range s.t.(*types.Named).TypeArgs().Types() {
		if ref, problem := b.typeRef(t); problem == "" {
			list = append(list, ref)
		}
	}
	return list
}

// shape checks the signature of the function under new: and returns the type of its
// configuration, if it takes one. problem says what does not fit.
func (b *binder) shape(s *subject, sig *types.Signature, c *plan.Constructor) (config types.Type, problem string) {
	if sig.Variadic() {
		return nil, "must not be variadic"
	}
	params := typeList(sig.Params())
	if len(params) > 0 && b.instance != nil && types.Identical(params[0], b.instance) {
		c.Instance, params = true, params[1:]
	}
	if len(params) > 1 {
		return nil, "has too many parameters"
	}
	results := sig.Results()
	switch n := results.Len(); {
	case n == 0:
		return nil, "returns nothing"
	case n > 2 || n == 2 && !isError(results.At(1).Type()):
		return nil, "returns the wrong results"
	case types.Identical(results.At(0).Type(), s.t):
	case types.Identical(results.At(0).Type(), types.NewPointer(s.t)):
		c.Pointer = true
	default:
		return nil, "returns " + b.typeText(results.At(0).Type())
	}
	c.Error = results.Len() == 2
	if len(params) == 0 {
		return nil, ""
	}
	return params[0], ""
}

// unfitNew reports a function under new: with the wrong signature.
func (b *binder) unfitNew(s *subject, f *types.Func, problem string) {
	name := s.Type.Name
	text := fmt.Sprintf("function %s %s; its parameters may be topo.Instance and a struct for the values of with, and it must return %s or *%s, and optionally an error",
		b.functionText(f), problem, name, name)
	b.atFunc(finding.Constructor, f, s.file.New, "", text)
}

// typeRef is t as the generated package writes it. problem says why it cannot be written.
func (b *binder) typeRef(t types.Type) (ref plan.TypeRef, problem string) {
	ref, problem = plan.TypeOf(t, b.checked.pkg)
	ref.Walk(func(r *plan.TypeRef) {
		if problem == "" && r.Kind == spec.StructType {
			problem = "type " + b.typeText(t) + plan.Nameless
		}
	})
	return ref, problem
}
