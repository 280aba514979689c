package bind

import (
	"context"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/topogen/topogen/spec/finding"
)

// newLoaders gives each result that can be bound its loader: one for each module
// or workspace, since there one packages.Load finds everything.
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
			l.wanted, l.cache = slices.Clone(options.Imports), options.Cache
			loaders[key] = l
			order = append(order, l)
		}
		l.roots[r.root.path] = r.root
		r.loader = l
		l.wanted = append(l.wanted, r.root.source.imported()...)
		l.wanted = slices.AppendSeq(l.wanted, maps.Keys(r.root.skeleton.aliases))
	}
	return order
}

// bindTypes binds by real types.
func (r *Result) bindTypes(ctx context.Context) error {
	if err := r.loader.ready(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.reporter.at(finding.PackageNotLoaded, r.reporter.topology.Name, "", "%v", err)
		return nil
	}
	c, err := watched(ctx, r.limits(nil), func() *checked { return r.loader.checkRoot(r.root) })
	if err != nil {
		return r.giveUp(ctx, err)
	}
	b := newBinder(r, c)
	b.loader = r.loader
	b.bind()
	r.take(b)
	r.Typed = true
	return nil
}

// take keeps what a binder found.
func (r *Result) take(b *binder) {
	r.PortsReady = b.portsReady
	r.Missing, r.Messages = b.missing, b.undeclared
	r.Border = b.crossing
	r.renamed, r.said = b.renamed, b.said
	r.open = false
}

// workspace tells apart where the go command has to run: by the go.work that
// holds for a module, else by the module.
func (e *environment) workspace(module string) string {
	switch file := e.value["GOWORK"]; file {
	case "off":
		return module
	case "":
	default:
		return file
	}
	for at := module; ; at = filepath.Dir(at) {
		file := filepath.Join(at, "go.work")
		if _, err := os.Stat(file); err == nil {
			return file
		}
		if at == filepath.Dir(at) {
			return module
		}
	}
}
