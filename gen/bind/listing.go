package bind

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/topogen/topogen/gen/cache"
)

// listing is a query to the go command whose answer may be cached. The query takes longer
// than the rest of a small build.
type listing struct {
	loader *loader
	batch  *cache.Batch // nil: the answer is not cached
	key    string
}

// listedPackage is the cached answer for a package without errors.
type listedPackage struct {
	Path, Name string
	File       string           // the first Go file, if the files may change; else ""
	Export     string           // its export data, in Go's build cache
	Imports    []string         // import paths, which vendoring may have changed
	Module     *packages.Module // nil: the standard library
}

// remember begins a listing. The answer is not cached in workspaces and without modules,
// because it may then depend on files that the cache does not watch.
func (l *loader) remember(paths []string) listing {
	r := listing{loader: l}
	if l.cache == nil || l.env.workspace(l.dir) != l.dir || l.env.value["GO111MODULE"] == "off" {
		return r
	}
	if !slices.Equal(l.env.list, os.Environ()) {
		return r // the identity describes the environment of this process only
	}
	r.batch, r.key = l.cache.Start(cache.Identify(l.env.flags...)), "packages\x00"+l.dir+"\x00"+strings.Join(paths, "\x00")
	return r
}

// recall uses the cached answer, if it is still valid.
func (r listing) recall() bool {
	if r.batch == nil {
		return false
	}
	found, ok := r.batch.Recall(r.key)
	if !ok {
		return false
	}
	var list []listedPackage
	if json.Unmarshal([]byte(found.Value), &list) != nil {
		return false
	}
	known := make(map[string]*packages.Package, len(list))
	for _, p := range list {
		if r.loader.roots[p.Path] != nil {
			return false // packages that import a root are checked from source, but only one file is cached
		}
		q := &packages.Package{ID: p.Path, PkgPath: p.Path, Name: p.Name, ExportFile: p.Export, Imports: make(map[string]*packages.Package), Module: p.Module}
		if p.Export != "" {
			if _, err := os.Stat(p.Export); err != nil {
				return false // Go's build cache has removed it
			}
		}
		if p.File != "" {
			q.GoFiles = []string{p.File}
		}
		for _, i := range p.Imports {
			if q.Imports[i] = known[i]; known[i] == nil { // imports come first in the list
				return false
			}
		}
		known[p.Path] = q
	}
	for path, p := range known {
		if r.loader.listed[path] == nil {
			r.loader.listed[path] = p
		}
	}
	clear(r.loader.source)
	return true
}

// record caches the answer, if it has no errors and does not depend on generated files.
func (r listing) record(roots []*packages.Package) {
	if r.batch == nil {
		return
	}
	var list []listedPackage
	gowork := r.loader.env.value["GOWORK"]
	in := cache.Inputs{Files: cache.ModuleFiles(r.loader.dir, gowork)}
	for p := range packages.Postorder(roots) {
		if len(p.Errors) > 0 || r.loader.roots[p.PkgPath] != nil || p.ExportFile == "" && p.PkgPath != "unsafe" {
			return
		}
		q := listedPackage{Path: p.PkgPath, Name: p.Name, Export: p.ExportFile}
		for _, i := range p.Imports {
			q.Imports = append(q.Imports, i.PkgPath)
		}
		slices.Sort(q.Imports)
		if m := origin(p); m != nil {
			q.Module = &packages.Module{Path: p.Module.Path, Version: m.Version, Dir: m.Dir, Main: m.Main}
		}
		if mayChange(p) {
			if len(p.OtherFiles) > 0 {
				return // cgo may include any C file
			}
			q.File = p.GoFiles[0]
			dir := filepath.Dir(q.File)
			in.Dirs = append(in.Dirs, dir)
			in.Files = append(in.Files, cache.ModuleFiles(dir, gowork)...) // a new go.mod in between would put the package into another module
		}
		list = append(list, q)
	}
	if value, err := json.Marshal(list); err == nil {
		r.batch.Record(cache.Build{Key: r.key, Inputs: in, Value: string(value)})
	}
}
