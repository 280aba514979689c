package wire

import (
	"context"
	"fmt"
	"go/types"
	"slices"

	"golang.org/x/tools/go/packages"

	"github.com/topogen/topogen/gen/plan"
)

// Named is a message and its type as a plan has it.
type Named struct {
	Name string
	Type plan.TypeRef
}

// Load finds the types of messages for whoever has not bound the topology by real
// types. It loads own, the package that the codecs are for, which need not compile
// and need not be there, and those that the types mention; dir is a folder of the
// module.
func Load(ctx context.Context, dir string, own *types.Package, messages []Named, flags ...string) (*types.Package, []Input, error) {
	paths := []string{own.Path()}
	for _, m := range messages {
		paths = m.Type.Imports(paths)
	}
	slices.Sort(paths)
	config := &packages.Config{
		Context: ctx, Dir: dir, BuildFlags: flags,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
	}
	list, err := packages.Load(config, slices.Compact(paths)...)
	if err != nil {
		return nil, nil, err
	}
	r := &resolver{own: own, packages: make(map[string]*types.Package)}
	for _, p := range list {
		if p.Types == nil || len(p.GoFiles) == 0 {
			continue
		}
		if r.packages[p.PkgPath] = p.Types; p.PkgPath == own.Path() {
			r.own = p.Types
		}
	}
	var inputs []Input
	for _, m := range messages {
		t, err := r.resolve(m.Type)
		if err != nil {
			return nil, nil, fmt.Errorf("message %s: %w", m.Name, err)
		}
		inputs = append(inputs, Input{Name: m.Name, Type: t})
	}
	return r.own, inputs, nil
}

// resolver finds types in packages that were loaded.
type resolver struct {
	own      *types.Package
	packages map[string]*types.Package
}

func (r *resolver) resolve(t plan.TypeRef) (types.Type, error) {
	if t.Kind == plan.Named {
		return r.named(t)
	}
	elem, err := r.resolve(*t.Elem)
	if err != nil {
		return nil, err
	}
	switch t.Kind {
	case plan.Pointer:
		return types.NewPointer(elem), nil
	case plan.Slice:
		return types.NewSlice(elem), nil
	case plan.Array:
		return types.NewArray(elem, t.Len), nil
	}
	key, err := r.resolve(*t.Key)
	if err != nil {
		return nil, err
	}
	return types.NewMap(key, elem), nil
}

func (r *resolver) named(t plan.TypeRef) (types.Type, error) {
	p := r.own
	if t.Import != "" {
		p = r.packages[t.Import]
	}
	var object types.Object
	if p != nil {
		object = p.Scope().Lookup(t.Name)
	}
	if object == nil && t.Import == "" {
		object = types.Universe.Lookup(t.Name)
	}
	name, ok := object.(*types.TypeName)
	if !ok {
		return nil, fmt.Errorf("type %s was not found", t)
	}
	generic, ok := name.Type().(interface{ TypeParams() *types.TypeParamList })
	if want := ok && generic.TypeParams().Len() > 0; want != (len(t.Args) > 0) {
		return nil, fmt.Errorf("type %s has other type arguments", t)
	} else if !want {
		return name.Type(), nil
	}
	var args []types.Type
	for _, a := range t.Args {
		arg, err := r.resolve(a)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	return types.Instantiate(nil, name.Type(), args, true)
}
