package bind

import (
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec/finding"
)

// The go command copies only packages into a vendor folder that something imports. When a topology
// gets a new feature, its code imports packages of the runtime that nothing has imported yet. The
// files are written all the same, because the command that copies the packages needs them.

// notVendored is the package of the runtime that an error of go/types is about, if only the
// vendor folder lacks the package; else "".
func (r *Result) notVendored(message string) string {
	rest, ok := strings.CutPrefix(message, "could not import "+runtimeModule+"/")
	if !ok {
		return ""
	}
	path, _, _ := strings.Cut(runtimeModule+"/"+rest, " ")
	if p := r.loader.listed[path]; p == nil || !lacksVendored(p) {
		return ""
	}
	topo, own := r.loader.listed[plan.Topo], ownVersion()
	if topo == nil || topo.Module == nil || own != "" && origin(topo).Version != "" && origin(topo).Version != own {
		return "" // another release, which may not have the package
	}
	return path
}

// lacksVendored reports whether a package is missing because the go command looked only into the
// vendor folder.
func lacksVendored(p *packages.Package) bool {
	for _, e := range p.Errors {
		if strings.Contains(e.Msg, "import lookup disabled by -mod=vendor") {
			return true
		}
	}
	return false
}

// vendorFirst is the finding for a package that only the vendor folder lacks. It is not about the
// topology, so that the files are written.
func (r *Result) vendorFirst(path string) finding.Finding {
	dir, command := r.loader.vendor()
	return finding.New(finding.GoType, r.reporter.display(filepath.Join(dir, "vendor", "modules.txt")), finding.Range{}, "",
		"the generated code imports package "+path+", which is not in the vendor folder", "run "+command)
}

// vendor returns the folder with the vendor folder, and the command that fills the vendor folder. The
// packages may need modules that go.sum does not contain yet.
func (l *loader) vendor() (dir, command string) {
	if at := l.env.workspace(l.dir); filepath.Base(at) == "go.work" {
		return filepath.Dir(at), "go mod tidy && go work vendor"
	}
	return l.dir, "go mod tidy && go mod vendor"
}
