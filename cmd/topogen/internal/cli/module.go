package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/topogen/topogen/templates"
)

// toolPath is the package in a tool line of go.mod.
const toolPath = modulePath + "/cmd/topogen"

// goRelease is the release of Go in new modules and workflows, unless topogen requires a
// later one.
const goRelease = "1.26"

// unreleased is the version that the go command writes for a module that is replaced by
// a folder.
const unreleased = "v0.0.0-00010101000000-000000000000"

// newModule is the module of a new topology.
type newModule struct {
	path     string
	release  string   // of Go
	version  string   // of topogen
	checkout string   // folder that replaces topogen; "" for a release
	requires []string // "path version" of the modules that topogen is built with
	sums     []byte   // go.sum
}

// describeModule describes a module that uses this topogen: its release, or else the
// checkout that it was built from. With a checkout the go.mod is complete, so that the
// module works offline.
func describeModule(ctx context.Context, path string, env []string) *newModule {
	m := &newModule{path: path, release: goRelease, version: ownVersion()}
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Sum != "" && info.Main.Replace == nil {
		return m // this topogen was downloaded, so the proxy has it and its dependencies
	}
	m.version = unreleased
	m.checkout = findCheckout(ctx, info, env)
	if m.checkout == "" || !ok {
		return m
	}
	needed := slices.Clone(alsoNeeded)
	for _, dep := range info.Deps {
		needed = append(needed, dep.Path)
	}
	m.require(needed)
	// Without go.sum the module could not be built offline.
	m.sums, _ = os.ReadFile(filepath.Join(m.checkout, "go.sum"))
	return m
}

// alsoNeeded are modules that this program does not link: a dependency of generated
// code, and a dependency of this program on Windows.
var alsoNeeded = []string{"github.com/cespare/xxhash/v2", "github.com/inconshreveable/mousetrap"}

// require copies the checkout's requirements of modules, and its release of Go, to the
// new module.
func (m *newModule) require(modules []string) {
	text, _ := os.ReadFile(filepath.Join(m.checkout, "go.mod")) // isCheckout has just read it
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		switch {
		case len(fields) < 2:
		case fields[0] == "go":
			m.release = fields[1]
		case slices.Contains(modules, fields[0]):
			m.requires = append(m.requires, fields[0]+" "+fields[1])
		}
	}
	slices.Sort(m.requires)
	m.requires = slices.Compact(m.requires)
}

// findCheckout returns the folder of the checkout from which this program was built.
func findCheckout(ctx context.Context, info *debug.BuildInfo, env []string) string {
	if info != nil && info.Main.Replace != nil && isCheckout(info.Main.Replace.Path) {
		return info.Main.Replace.Path
	}
	// The path of this source file, unless paths were trimmed.
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		for dir := filepath.Dir(file); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if isCheckout(dir) {
				return dir
			}
		}
	}
	// The program runs by "go run" in the checkout, or in a module that replaces it.
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath)
	list.Env = env
	if dir, err := list.Output(); err == nil && isCheckout(strings.TrimSpace(string(dir))) {
		return strings.TrimSpace(string(dir))
	}
	return ""
}

func isCheckout(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && filepath.IsAbs(dir) && modulePathOf(text) == modulePath
}

func (m *newModule) files() []templates.File {
	var text strings.Builder
	fmt.Fprintf(&text, "module %s\n\ngo %s\n\ntool %s\n\nrequire %s %s\n", m.path, m.release, toolPath, modulePath, m.version)
	if len(m.requires) > 0 {
		text.WriteString("\nrequire (\n")
		for _, line := range m.requires {
			fmt.Fprintf(&text, "\t%s // indirect\n", line)
		}
		text.WriteString(")\n")
	}
	if m.checkout != "" {
		fmt.Fprintf(&text, "\nreplace %s => %s\n", modulePath, quoted(m.checkout))
	}
	files := []templates.File{{Name: "go.mod", Text: []byte(text.String())}}
	if len(m.sums) > 0 {
		files = append(files, templates.File{Name: "go.sum", Text: m.sums})
	}
	return files
}

// quoted returns a path in the syntax of go.mod.
func quoted(path string) string {
	if strings.ContainsAny(path, " \t\"'`()[]{},;") || strings.Contains(path, "//") {
		return fmt.Sprintf("%q", path)
	}
	return path
}

// runtimePackages are the packages that generated code imports. The go command cannot
// find them itself before code was generated.
var runtimePackages = []string{"graph", "piper", "pool", "queue", "route", "topo"}

// complete runs the go command to add the requirements of a release to a new module. On
// failure it returns the output of the go command.
func (m *newModule) complete(ctx context.Context, dir string, env []string) (output string, ok bool) {
	packages := []string{"get"}
	for _, name := range runtimePackages {
		packages = append(packages, modulePath+"/runtime/"+name+"@"+m.version)
	}
	for _, args := range [][]string{{"get", "-tool", toolPath + "@" + m.version}, packages} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = dir
		cmd.Env = append(slices.Clip(env), "PWD="+dir, "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			return strings.TrimSpace(string(out) + "\n" + err.Error()), false
		}
	}
	return "", true
}
