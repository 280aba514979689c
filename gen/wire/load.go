package wire

import (
	"context"
	"errors"
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
// types: it loads the package in dir, which need not compile, and those that the
// types mention.
func Load(ctx context.Context, dir string, messages []Named, flags ...string) (*types.Package, []Input, error) {
	paths := []string{"."}
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
	r := &resolver{packages: make(map[string]*types.Package)}
	for _, p := range list {
		if r.packages[p.PkgPath] = p.Types; slices.Contains(paths, p.PkgPath) {
			continue
		}
		r.own = p.Types // "."
	}
	if r.own == nil {
		return nil, nil, errors.New("no package was found in " + dir)
	}
	var inputs []Input
	for _, m := range messages {
		t, err := r.resolve(m.Type)
		if err != nil {
			return nil, nil, fmt.Errorf("message %s: %w", m.Name, err)
		}
		inputs = append(inputs, Input{m.Name, t})
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
	if len(t.Args) == 0 {
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
