package bind

import (
	"context"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/topogen/topogen/gen/lifetime"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec/finding"
)

// handlers are the methods with a receiver or parameters that are valid only during the call, by the import
// path of the package that declares them. Another package declares a method if the topology
// names a type of that package, or if the type is an alias of such a type or embeds one.
func (r *Result) handlers() map[string][]lifetime.Handler {
	list := make(map[string][]lifetime.Handler)
	for _, s := range r.binder.subjects {
		add := func(m *plan.Method, message bool) {
			if m == nil || m.Name == "" {
				return
			}
			f := r.binder.method(s.t, m.Name)
			if t := lifetime.NamedOf(f.Signature().Recv().Type()); t != nil {
				if h, path := handlerOf(t.Obj().Name(), m, message), f.Pkg().Path(); h.Borrows() {
					list[path] = append(list[path], h)
				}
			}
		}
		for j := range s.Receives {
			add(&s.Receives[j].Method, true)
		}
		add(s.Calls.Ping, false)
		add(s.Calls.Serve, false)
		add(s.Calls.Finish, false)
	}
	for i := range r.binder.plan.Processors {
		if m := r.binder.plan.Processors[i].Machine; m != nil {
			r.updates(list, r.binder.kept[m.Update])
		}
	}
	return list
}

// updates adds the methods of an update of a state machine. A method that the update gets from an
// embedded type is left out, because the update may hold that type by a pointer, which it may keep.
func (r *Result) updates(list map[string][]lifetime.Handler, update types.Type) {
	for _, name := range []string{"Update", "UpdateAt", "Revert"} {
		f := r.binder.method(update, name)
		if f == nil || !types.Identical(f.Signature().Recv().Type(), types.NewPointer(update)) {
			continue
		}
		h := lifetime.Handler{Type: lifetime.NamedOf(update).Obj().Name(), Name: name, Receiver: lifetime.Update}
		list[f.Pkg().Path()] = append(list[f.Pkg().Path()], h)
	}
}

// handlerOf says which parameters of a method are valid only during its call. The context of
// Serve is valid as long as the instance.
func handlerOf(typ string, m *plan.Method, message bool) lifetime.Handler {
	h := lifetime.Handler{Type: typ, Name: m.Name}
	add := func(exists, ends bool, kind lifetime.Kind) {
		switch {
		case exists && ends:
			h.Params = append(h.Params, kind)
		case exists:
			h.Params = append(h.Params, lifetime.Other)
		}
	}
	add(m.Context, m.Name != lifetime.Serve, lifetime.Context)
	add(message, m.Message == plan.ByPointer, lifetime.Message)
	add(m.Out != plan.NoOut, true, lifetime.Sender)
	return h
}

// lifetimes finds parameters that handlers keep after their calls, in a package of these
// files without type errors. If the analysis takes too long, there are no findings,
// because the analysis must never be the reason for a failed build.
func (r *Result) lifetimes(ctx context.Context, generated []*ast.File) (findings []finding.Finding) {
	leaks, err := within(ctx, r.loader.timeout, r.checking(), func() []lifetime.Leak { return r.leaks(generated) })
	if err != nil {
		r.loader.failure = err // the check may still be using the loader
		return nil
	}
	for _, l := range leaks {
		f := r.reporter.goFinding(finding.OutlivesCall, r.Fset().PositionFor(l.Pos, false), l.Message())
		f.Suggestion = l.Suggestion()
		findings = append(findings, f)
	}
	return finding.Sort(findings)
}

func (r *Result) leaks(generated []*ast.File) []lifetime.Leak {
	handlers := r.handlers()
	leaks := r.leaksIn(r.root.path, r.root.source.files, generated, handlers[r.root.path])
	delete(handlers, r.root.path)
	for _, path := range slices.Sorted(maps.Keys(handlers)) {
		leaks = append(leaks, r.leaksOf(path, handlers[path])...)
	}
	return leaks
}

// leaksOf checks another of the user's packages that declares processor types. It reads the
// package from source.
func (r *Result) leaksOf(path string, handlers []lifetime.Handler) []lifetime.Leak {
	source := r.loader.sourceOf(path)
	if len(source.errors) > 0 {
		return nil // the package does not compile, which is reported elsewhere
	}
	return r.leaksIn(path, source.files, nil, handlers)
}

// leaksIn checks a package. If the package has suspicious code, leaksIn type-checks it
// again and records all types. It skips the bodies of generated functions, and of functions that
// do not compile with the stand-in for C.
func (r *Result) leaksIn(path string, own, generated []*ast.File, handlers []lifetime.Handler) []lifetime.Leak {
	suspects := lifetime.Suspects(own, handlers)
	if len(suspects) == 0 {
		return nil
	}
	p := &lifetime.Package{Fset: r.Fset(), Info: lifetime.NewInfo()}
	for _, file := range generated {
		p.Generated = append(p.Generated, lifetime.Bare(file, func(*ast.FuncDecl) bool { return false }))
	}
	clean := true
	skipped := make(map[*ast.FuncDecl]bool)
	config := &types.Config{
		Importer: withC{r.loader, own},
		Sizes:    r.loader.env.sizes(),
		Error: func(err error) {
			e, ok := err.(types.Error)
			if ok && (e.Soft || aboutC(e)) { // soft errors: imports of generated files that only bodies use
				return
			}
			f := functionAt(own, e.Pos)
			skipped[f] = true
			clean = clean && ok && f != nil && (r.loader.usesC(path) || slices.ContainsFunc(own, importsC))
		},
	}
	if path == r.root.path {
		config.GoVersion = r.root.module.goVersion
		r.loader.inProgress[path] = true
		defer delete(r.loader.inProgress, path)
	}
	if p.Types, _ = config.Check(path, r.Fset(), slices.Concat(own, p.Generated), p.Info); !clean {
		return nil
	}
	for _, file := range own {
		p.Files = append(p.Files, lifetime.Bare(file, func(f *ast.FuncDecl) bool { return !skipped[f] }))
	}
	return lifetime.Check(p, suspects)
}

// functionAt is the function whose body contains a position; nil if there is none.
func functionAt(files []*ast.File, pos token.Pos) *ast.FuncDecl {
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && f.Body.Pos() <= pos && pos < f.Body.End() {
				return f
			}
		}
	}
	return nil
}
