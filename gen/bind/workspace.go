package bind

import (
	"context"
	"fmt"
	"go/token"
	"slices"

	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec/finding"
)

// newLoaders gives each result that can be bound a loader. Results in the same module or
// workspace share a loader, because one packages.Load finds all their packages.
func newLoaders(fset *token.FileSet, env *environment, results []*Result, options Options) []*loader {
	loaders := make(map[string]*loader)
	var order []*loader
	for _, r := range results {
		if r.root == nil {
			continue
		}
		key := env.workspace(r.root.module.dir)
		l := loaders[key]
		if l == nil {
			l = newLoader(fset, env, r.root.module.dir)
			l.generated, l.cache = options.Imports, options.Cache
			l.wanted = slices.Clone(options.Imports)
			loaders[key] = l
			order = append(order, l)
		}
		l.roots[r.root.path] = r.root
		r.loader = l
		l.wanted = append(l.wanted, r.root.imported()...)
	}
	return order
}

// bind finds the declarations that the topology names in its package.
func (r *Result) bind(ctx context.Context) {
	var c *checked
	if r.loader.failure == nil {
		c, r.loader.failure = within(ctx, r.loader.timeout, r.checking(), func() *checked { return r.loader.checkRoot(r.root) })
	}
	if err := r.loader.failure; err != nil {
		r.reporter.at(finding.PackageNotLoaded, r.reporter.topology.Name, "", "%v", err)
		return
	}
	r.Facts = plan.NewFacts(r.Outline)
	r.binder = newBinder(r, c)
	r.binder.bind()
}

// checking describes a type check, for the error when it takes too long.
func (r *Result) checking() string {
	return fmt.Sprintf("checking the types of package %s (look for types that double in size with each line)", r.root.path)
}

// workspace identifies the place where the go command must run: the go.work that
// applies to a module, else the module.
func (e *environment) workspace(module string) string {
	switch file := e.value["GOWORK"]; file {
	case "off":
		return module
	case "":
		if tried, dir := cache.Above(module, "go.work"); dir != "" {
			return tried[len(tried)-1]
		}
		return module
	default:
		return file
	}
}
