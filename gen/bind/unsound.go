package bind

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/topogen/topogen/gen/header"
	"github.com/topogen/topogen/spec/finding"
)

// position begins a line of what the go command or the compiler says about a file.
var position = regexp.MustCompile(`^(.+\.go):(\d+):(\d+): (.*)$`)

// unsound are the errors in other packages that the package needs and that are the
// user's to change. Such a package is checked from source as far as that goes, so the
// topology may bind although it does not compile.
func (r *Result) unsound(files []*ast.File) (found []finding.Finding) {
	l := r.loader
	if len(l.unsound) == 0 {
		return nil
	}
	needed := l.reach(make(map[string]bool), imported(files)...)
	theirs := make(map[string]bool) // folders of packages that are the user's
	for path := range needed {
		if p := l.listed[path]; p != nil && mayChange(p) && !strings.HasPrefix(path, home+"/runtime/") {
			theirs[filepath.Dir(p.GoFiles[0])] = true
		}
	}
	delete(theirs, r.root.source.dir) // checking it says what is wrong
	for _, p := range l.unsound {
		missing := p.Name == "" && p.Module == nil // what imports it has the place of the error
		if needed[p.PkgPath] && (missing || mayChange(p)) && !l.awaits(p.PkgPath) {
			for _, e := range p.Errors {
				found = append(found, r.unsoundFindings(p, e, theirs)...)
			}
		}
	}
	return found[:min(len(found), typeErrorsMax)]
}

// awaits reports whether this build or another one may still generate code for a package or
// for a package that it imports. Then its errors may come from code that is missing.
func (l *loader) awaits(path string) bool {
	for path := range l.reach(make(map[string]bool), path) {
		if l.roots[path] != nil {
			return true
		}
		if p := l.listed[path]; p != nil && mayChange(p) && hasTopology(p) {
			return true
		}
	}
	return false
}

// hasTopology reports whether the folder of a package holds a topology file under its
// usual name, or files that were generated from one.
func hasTopology(p *packages.Package) bool {
	for _, name := range []string{"topology.yml", "topology.yaml"} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(p.GoFiles[0]), name)); err == nil {
			return true
		}
	}
	return slices.ContainsFunc(p.GoFiles, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && header.Is(text)
	})
}

// unsoundFindings turns what the go command says of a package into findings: one for
// each line that begins with a place in a file of the user's.
func (r *Result) unsoundFindings(p *packages.Package, e packages.Error, theirs map[string]bool) (found []finding.Finding) {
	lines := strings.Split(e.Msg, "\n")
	if e.Pos != "" {
		lines = []string{e.Pos + ": " + firstLine(e.Msg)}
	}
	for _, line := range lines {
		m := position.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		at := token.Position{Filename: filepath.FromSlash(m[1])}
		at.Line, _ = strconv.Atoi(m[2])
		at.Column, _ = strconv.Atoi(m[3])
		if !filepath.IsAbs(at.Filename) {
			at.Filename = filepath.Join(r.loader.dir, at.Filename)
		}
		if !theirs[filepath.Dir(at.Filename)] {
			continue
		}
		found = append(found, r.reporter.goFinding(finding.GoType, at, m[4]))
	}
	if strings.HasPrefix(e.Msg, "import cycle ") {
		at := r.reporter.topology.Name
		found = append(found, finding.New(finding.PackageNotLoaded, r.reporter.topology.File, at.At, at.Pointer,
			"package "+p.PkgPath+" cannot be loaded: "+firstLine(e.Msg), ""))
	}
	return found
}

// mixed is what the go command says of a folder that holds Go files of several packages.
func mixed(p *packages.Package) string {
	i := slices.IndexFunc(p.Errors, func(e packages.Error) bool { return strings.HasPrefix(e.Msg, "found packages ") })
	if i < 0 {
		return ""
	}
	said, _, _ := strings.Cut(firstLine(p.Errors[i].Msg), " in "+string(filepath.Separator))
	return said
}
