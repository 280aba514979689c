package bind

import (
	"errors"
	"fmt"
	"go/version"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/gen/plan"
)

// runtimeModule is the module of the runtime that generated code imports.
const runtimeModule = "github.com/topogen/topogen"

// module is the Go module of a folder.
type module struct {
	dir       string
	path      string
	goVersion string // "go1.26.0", for go/types
}

var errNoModule = errors.New("no go.mod in the folder of the topology or above it")

// findModule reads the go.mod that encloses dir.
func findModule(dir string) (*module, error) {
	_, at := cache.Above(dir, "go.mod")
	if at == "" {
		return nil, errNoModule
	}
	data, err := readRegular(filepath.Join(at, "go.mod"))
	if err != nil {
		return nil, err
	}
	return parseModule(at, data)
}

func parseModule(dir string, data []byte) (*module, error) {
	file, err := modfile.ParseLax("go.mod", data, nil)
	if err != nil {
		return nil, fmt.Errorf("go.mod cannot be read: %w", err)
	}
	if file.Module == nil {
		return nil, errors.New("go.mod must declare the path of the module")
	}
	m := &module{dir: dir, path: file.Module.Mod.Path, goVersion: "go1.16"} // the meaning of a missing go line
	if file.Go != nil {
		m.goVersion = "go" + file.Go.Version
	}
	if version.Compare(m.goVersion, runtime.Version()) > 0 && version.IsValid(runtime.Version()) {
		m.goVersion = version.Lang(runtime.Version()) // go/types refuses versions newer than itself
	}
	return m, nil
}

// importPath is the import path of the package in dir, a folder of the module. It follows
// symbolic links within the module, so that each package has one path.
func (m *module) importPath(dir string) string {
	rel, err := filepath.Rel(m.dir, dir)
	if real, ok := m.resolve(dir); ok {
		rel = real
	}
	if err != nil || rel == "." {
		return m.path
	}
	return path.Join(m.path, filepath.ToSlash(rel))
}

// resolve follows symbolic links and returns dir relative to the module's folder. ok is false if dir
// is outside the module.
func (m *module) resolve(dir string) (rel string, ok bool) {
	root, real := withoutLinks(m.dir), withoutLinks(dir)
	if inner, err := findModule(real); err != nil || inner.dir != root {
		return "", false
	}
	rel, err := filepath.Rel(root, real)
	return rel, err == nil
}

// withoutLinks follows the symbolic links in the path of a folder, which may not exist yet.
func withoutLinks(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	switch {
	case err == nil:
		return real
	case dir == filepath.Dir(dir):
		return dir
	}
	return filepath.Join(withoutLinks(filepath.Dir(dir)), filepath.Base(dir))
}

// wrongRuntimeError is the error for a module without the runtime, or with a different release of it.
func (r *Result) wrongRuntimeError() error {
	if problem := r.loader.problem(plan.Topo); problem != "" {
		return fmt.Errorf("the runtime cannot be loaded: %s", problem)
	}
	has := runtimeModule
	if p := r.loader.listed[plan.Topo]; p != nil && p.Module != nil {
		m := origin(p)
		has = strings.TrimSpace(runtimeModule+" "+m.Version) + " in " + m.Dir
	}
	wanted := "the release of this topogen"
	if version := ownVersion(); version != "" {
		wanted = runtimeModule + "@" + version
	}
	return fmt.Errorf("the runtime in go.mod must match this topogen, got %s; require %s", has, wanted)
}

// ownVersion is the release of this program; "" for a development build.
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == runtimeModule && m.Replace == nil && m.Version != "(devel)" && !strings.Contains(m.Version, "+dirty") {
			return m.Version
		}
	}
	return ""
}
