package bind

import (
	"maps"
	"slices"
)

// Declares returns a function that reports whether the user's files declare a name
// at package level.
func (r *Result) Declares() func(name string) bool {
	if r.root == nil {
		return func(string) bool { return false }
	}
	declared := r.root.source.taken()
	return func(name string) bool { return declared[name] != nil }
}

// Imports returns a function that reports whether a file of the package imports a package
// under a name. No declaration at package level may have such a name.
func (r *Result) Imports() func(name string) bool {
	names := make(map[string]bool)
	if r.root != nil {
		for _, file := range r.root.source.all() {
			for _, i := range file.Imports {
				if i.Name != nil {
					names[i.Name.Name] = true
				}
			}
		}
	}
	return func(name string) bool { return names[name] }
}

// Inputs lists the folders whose Go files determine the result, and the result of Verify
// if it was called. The paths are absolute and sorted. Packages of versioned modules and
// of the standard library are not listed, because go.mod and the Go release determine them.
func (r *Result) Inputs() []string {
	folders := make(map[string]bool)
	if r.Dir != "" {
		folders[r.Dir] = true
	}
	if r.root != nil {
		paths := append(r.root.imported(), r.loader.generated...)
		maps.Copy(folders, r.loader.folders(paths...))
	}
	return slices.Sorted(maps.Keys(folders))
}
