package bind

import (
	"go/ast"
	"maps"
	"slices"

	"github.com/topogen/topogen/gen/plan"
)

// Declares gives a function that reports whether the user's files declare a name
// at package level.
func (r *Result) Declares() func(name string) bool {
	if r.root == nil {
		return func(string) bool { return false }
	}
	declared := r.root.source.taken()
	return func(name string) bool { return declared[name] != nil }
}

// Inputs lists the folders whose Go files the result depends on, and Verify's if
// it was called: absolute and sorted. What comes with a version or with Go itself
// follows from go.mod and the release.
func (r *Result) Inputs() []string {
	folders := map[string]bool{r.Dir: true}
	if r.root != nil && r.loader.done {
		seen := make(map[string]bool)
		for _, path := range r.root.source.imported() {
			r.loader.folders(path, folders, seen)
		}
		for path := range r.root.skeleton.aliases {
			r.loader.folders(path, folders, seen)
		}
	}
	delete(folders, "")
	return slices.Sorted(maps.Keys(folders))
}

// Mentions gives the names that may be used where something is called: all that
// the user's files mention, and senders and their methods that a processor takes by
// an interface, which another package may declare.
func (r *Result) Mentions() map[string]bool {
	names := make(map[string]bool)
	for _, file := range r.root.source.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names[id.Name] = true
			}
			return true
		})
	}
	for i := range r.Plan.Processors {
		p := &r.Plan.Processors[i]
		methods := []*plan.Method{p.Ping, p.Serve, p.Finish}
		for j := range p.Receives {
			methods = append(methods, &p.Receives[j].Method)
		}
		if slices.ContainsFunc(methods, func(m *plan.Method) bool { return m != nil && m.Out != plan.NoOut && m.Out != plan.SenderOut }) {
			names[p.Sender()] = true
			for _, s := range p.Sends {
				names[s.Name] = true
			}
		}
	}
	return names
}
