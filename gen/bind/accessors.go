package bind

import (
	"maps"
	"slices"
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

// Imports reports whether a file of the package gives that name to what it imports: no
// declaration at package level may have it.
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

// Inputs lists the folders whose Go files the result depends on, and Verify's if
// it was called: absolute and sorted. What comes with a version or with Go itself
// follows from go.mod and the release.
func (r *Result) Inputs() []string {
	folders := make(map[string]bool)
	if r.Dir != "" {
		folders[r.Dir] = true
	}
	if r.root != nil {
		paths := slices.Concat(r.root.source.imported(), slices.Collect(maps.Keys(r.root.skeleton.aliases)), r.loader.generated)
		maps.Copy(folders, r.loader.folders(paths...))
	}
	return slices.Sorted(maps.Keys(folders))
}
