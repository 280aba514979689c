package bind

import (
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec/finding"
)

// The go command copies a package into the vendor folder only if some code imports it. The generated
// code for a new feature may import packages of the runtime that no code has imported before. Then
// topogen writes the files in spite of the error, because the go command needs the imports in them
// to copy the packages.

// notVendored returns the path of the runtime's package that could not be imported, according to an
// error of go/types, because the vendor folder lacks it. For all other errors it returns "".
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

// withoutVendor writes the files of a topology that needs the types of a package that the vendor folder
// lacks. Only these files may import the package, and go mod vendor does not copy it without an import.
const withoutVendor = "GOFLAGS=-mod=readonly topogen build"

// vendorFirst returns the finding for a package that the vendor folder lacks. The finding is not
// about the topology, so the files are written.
func (r *Result) vendorFirst(path string) finding.Finding {
	dir, command := r.loader.vendor()
	return finding.New(finding.GoType, r.reporter.display(filepath.Join(dir, "vendor", "modules.txt")), finding.Range{}, "",
		"the generated code imports package "+path+", which is not in the vendor folder", "run "+command)
}

// vendor returns the folder that contains the vendor folder, and the command that updates the vendor
// folder. The command begins with go mod tidy, because the packages may need modules that go.sum
// does not contain yet.
func (l *loader) vendor() (dir, command string) {
	if at := l.env.workspace(l.dir); filepath.Base(at) == "go.work" {
		return filepath.Dir(at), "go mod tidy && go work vendor"
	}
	return l.dir, "go mod tidy && go mod vendor"
}
