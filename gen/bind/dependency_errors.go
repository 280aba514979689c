package bind

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/topogen/topogen/spec/finding"
)

// position matches an error line of the go command or the compiler, which begins with a position.
var position = regexp.MustCompile(`^(.+\.go):(\d+):(\d+): (.*)$`)

// dependencyErrors lists the errors in the user's other packages that the package imports.
// Such a package is checked from source as far as possible, so a topology may bind although
// the package does not compile.
func (r *Result) dependencyErrors(files []*ast.File) (found []finding.Finding) {
	l := r.loader
	if len(l.dependencyErrors) == 0 {
		return nil
	}
	needed := l.reach(make(map[string]bool), imported(files)...)
	userFolders := make(map[string]bool) // folders of the user's packages
	for path := range needed {
		if p := l.listed[path]; p != nil && mayChange(p) && !strings.HasPrefix(path, runtimeModule+"/runtime/") {
			userFolders[filepath.Dir(p.GoFiles[0])] = true
		}
	}
	delete(userFolders, r.root.source.dir) // checking the root reports its errors
	for _, p := range l.dependencyErrors {
		missing := p.Name == "" && p.Module == nil // the error is at the import of the package
		if needed[p.PkgPath] && (missing || mayChange(p)) && !l.awaitsCode(p.PkgPath) {
			for _, e := range p.Errors {
				found = append(found, r.dependencyFindings(p, e, userFolders)...)
			}
		}
	}
	return found[:min(len(found), typeErrorsMax)]
}

// awaitsCode reports whether this build or another build may still generate code for a
// package or for one of its imports. Then its errors may come from missing code.
func (l *loader) awaitsCode(path string) bool {
	for path := range l.reach(make(map[string]bool), path) {
		if l.roots[path] != nil {
			return true
		}
		if p := l.listed[path]; p != nil && mayChange(p) && len(topologiesOf(p)) > 0 {
			return true
		}
	}
	return false
}

// dependencyFindings turns an error of the go command about a package into findings: one
// for each line that begins with a position in one of the user's files.
func (r *Result) dependencyFindings(p *packages.Package, e packages.Error, userFolders map[string]bool) (found []finding.Finding) {
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
		if !userFolders[filepath.Dir(at.Filename)] {
			continue
		}
		f := r.reporter.goFinding(finding.GoType, at, m[4])
		if name, undefined := strings.CutPrefix(m[4], "undefined: "); undefined {
			f.Suggestion = buildFirst(p.PkgPath, name)
		}
		found = append(found, f)
	}
	if strings.HasPrefix(e.Msg, "import cycle ") {
		at := r.reporter.topology.Name
		found = append(found, finding.New(finding.PackageNotLoaded, r.reporter.topology.File, at.At, at.Pointer,
			"package "+p.PkgPath+" cannot be loaded: "+firstLine(e.Msg), ""))
	}
	return found
}

// mixedPackages is the go command's message about a folder with Go files of several packages.
func mixedPackages(p *packages.Package) string {
	i := slices.IndexFunc(p.Errors, func(e packages.Error) bool { return strings.HasPrefix(e.Msg, "found packages ") })
	if i < 0 {
		return ""
	}
	message, _, _ := strings.Cut(firstLine(p.Errors[i].Msg), " in "+string(filepath.Separator))
	return message
}
