package bind

import (
	"bytes"
	"fmt"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/topogen/topogen/gen/header"
	"github.com/topogen/topogen/gen/internal/bounded"
	"github.com/topogen/topogen/gen/plan"
)

// importedFirst orders the indices of results so that each package comes after the packages
// that it imports. Packages in an import cycle, which is reported elsewhere, come in any order.
func importedFirst(results []*Result) (order []int) {
	index := make(map[*root]int)
	for i, r := range results {
		if r.root == nil {
			order = append(order, i)
		} else {
			index[r.root] = i
		}
	}
	visited := make(map[*loader]map[string]bool)
	for _, r := range results {
		if r.root == nil {
			continue
		}
		if visited[r.loader] == nil {
			visited[r.loader] = make(map[string]bool)
		}
		r.loader.visit(r.root.path, visited[r.loader], func(r *root) { order = append(order, index[r]) })
	}
	return order
}

// visit calls each for the root at path after all roots that it imports.
func (l *loader) visit(path string, visited map[string]bool, each func(*root)) {
	if visited[path] {
		return
	}
	visited[path] = true
	r := l.roots[path]
	imports := l.importsOf(path)
	if r != nil {
		imports = r.imported()
	}
	for _, i := range imports {
		l.visit(i, visited, each)
	}
	if r != nil {
		each(r)
	}
}

// Complete says that the files given to Verify are all files of the topology.
func (r *Result) Complete() {
	if r.root != nil {
		r.root.complete = true
	}
}

// Topologies lists topology files of packages that the package imports, directly or not, and
// that are not part of this run. Their generated code may be missing or old.
func (r *Result) Topologies() (files []string) {
	if r.root == nil || r.loader.failure != nil {
		return nil
	}
	reached := r.loader.reach(make(map[string]bool), r.root.imported()...)
	for _, path := range slices.Sorted(maps.Keys(reached)) {
		if p := r.loader.listed[path]; p != nil && r.loader.roots[path] == nil && mayChange(p) {
			files = append(files, topologiesOf(p)...)
		}
	}
	return files
}

// topologyBytesMax bounds the size of a topology file; spec refuses a larger file.
const topologyBytesMax = 4 << 20

// topologiesOf lists the topology files of a package: the YAML files in its folder with a
// key processors, and the sources of its generated files.
func topologiesOf(p *packages.Package) []string {
	dir := filepath.Dir(p.GoFiles[0])
	found := make(map[string]bool)
	entries, _ := os.ReadDir(dir) // without the folder the package has errors
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		if ext := filepath.Ext(name); ext != ".yml" && ext != ".yaml" {
			continue
		}
		text, err := bounded.ReadFile(name, topologyBytesMax)
		if err == nil && bytes.Contains(append([]byte{'\n'}, text...), []byte("\nprocessors:")) {
			found[name] = true
		}
	}
	for _, name := range p.GoFiles {
		text, err := readRegular(name)
		if h, ok := header.Read(text); err == nil && ok {
			found[filepath.Join(dir, filepath.FromSlash(h.Source))] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// generatedNames are names that the generated code of each topology declares.
var generatedNames = []string{"Topology", "New", "Processors", "ProcessorIndex", "EdgeIndex"}

// causedBy reports whether a qualified name that is undefined at pos is missing because the
// topology of its package has errors, which are reported there.
func (r *Result) causedBy(pos token.Pos, name string) bool {
	path, ident := r.qualified(pos, name)
	other := r.loader.roots[path]
	return other != nil && !other.complete && !other.quiet && other.declares(ident)
}

// buildFirst is the suggestion for a qualified name that is undefined at pos and may be missing
// because the code of its package is not generated yet; "" if it is missing for another reason.
func (r *Result) buildFirst(pos token.Pos, name string) string {
	path, ident := r.qualified(pos, name)
	if other := r.loader.roots[path]; other != nil && !other.complete && other.declares(ident) {
		return other.file + " has errors: run topogen build for it, then run this build again"
	}
	if p := r.loader.listed[path]; p == nil || !mayChange(p) {
		return ""
	}
	return buildFirst(path, ident)
}

// buildFirst is the suggestion for a name that is undefined in a package; "" if topogen never
// generates such a name.
func buildFirst(path, ident string) string {
	if !slices.Contains(generatedNames, ident) && !strings.HasSuffix(ident, "Sender") {
		return ""
	}
	return fmt.Sprintf("if topogen generates %s, run topogen build for the topology of package %s, then run this build again", ident, path)
}

// declares reports whether the generated code of a topology declares a name.
func (r *root) declares(ident string) bool {
	return slices.ContainsFunc(r.outline.Names(), func(n plan.Name) bool { return n.Ident == ident })
}

// qualified is the import path and the identifier of a qualified name in one of the user's files.
func (r *Result) qualified(pos token.Pos, name string) (path, ident string) {
	alias, ident, _ := strings.Cut(name, ".")
	for _, file := range r.root.source.files {
		if pos < file.FileStart || pos > file.FileEnd {
			continue
		}
		for _, i := range file.Imports {
			path, _ := strconv.Unquote(i.Path.Value) // valid, because it was parsed
			if i.Name != nil && i.Name.Name == alias || i.Name == nil && r.loader.nameOf(path) == alias {
				return path, ident
			}
		}
	}
	return "", ident
}

// nameOf is the name of the package at path.
func (l *loader) nameOf(path string) string {
	if r := l.roots[path]; r != nil {
		return r.name
	} else if p := l.listed[path]; p != nil {
		return p.Name
	}
	return ""
}
