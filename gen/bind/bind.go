package bind

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/gen/header"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// Input is a topology to bind.
type Input struct {
	Topology *spec.Topology
	Dir      string // folder of the topology file; "": the folder of Topology.File
	Quiet    bool   // its findings are not reported: it was added because another topology imports its package
}

// Options apply to all topologies of a run. The zero value is ready to use.
type Options struct {
	// Env is the environment of the go command; nil is the environment of the process.
	Env []string
	// Flags are flags for the go command, such as "-tags=a,b". They override GOFLAGS.
	Flags []string
	// Imports are packages that the generated files import for every topology. They are
	// listed here so that one packages.Load finds all packages.
	Imports []string
	// Cache keeps the go command's answers about packages; nil: there is no cache.
	Cache *cache.Cache
	// Bound is called for each topology after it is bound, imported packages first. If it
	// calls Verify, packages that are bound later see the generated code. nil: no call.
	Bound func(i int, r *Result)
}

// Result has the declarations and findings for one topology.
type Result struct {
	Outline    *plan.Plan  // nil if the package was not found
	Facts      *plan.Facts // facts about the outline; nil if the package could not be searched
	Dir        string      // absolute folder of the generated package
	PortsReady bool        // the file and the message types have no errors
	Findings   []finding.Finding
	Missing    []Missing
	Messages   []Struct  // undeclared message types
	Boundary   *Boundary // nil: no message is sent to another process or written to a log

	reporter *reporter
	root     *root // nil: nothing can be bound
	loader   *loader
	binder   *binder // nil: the types could not be loaded
}

// Bind binds each topology to the Go package of its generated files. It returns only
// errors of the context. Errors in topologies, in Go or of the go command are findings.
func Bind(ctx context.Context, inputs []Input, options Options) ([]*Result, error) {
	fset := token.NewFileSet()
	env := newEnvironment(options.Env, options.Flags...)
	results := make([]*Result, len(inputs))
	byFolder := make(map[string]*Result)
	for i, in := range inputs {
		r := locate(fset, env, in)
		results[i] = r
		if r.root == nil {
			continue
		}
		folder := withoutLinks(r.Dir)
		if other := byFolder[folder]; other != nil {
			r.reporter.at(finding.NameTaken, in.Topology.Name, ownFolder,
				"a package can hold the generated code of one topology, got %q and %q",
				other.reporter.topology.Name.Value, in.Topology.Name.Value)
			r.root = nil
			continue
		}
		byFolder[folder] = r
	}
	for _, l := range newLoaders(fset, env, results, options) {
		if l.failure = l.list(ctx, l.wanted); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	for _, i := range importedFirst(results) {
		r := results[i]
		if r.root != nil {
			r.bind(ctx)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.Findings = finding.Sort(r.reporter.findings)
		if options.Bound != nil {
			options.Bound(i, r)
		}
	}
	return results, nil
}

// locate finds the package and outlines the plan. The result's root stays nil if the
// topology cannot be bound.
func locate(fset *token.FileSet, env *environment, in Input) *Result {
	t := in.Topology
	dir := in.Dir
	if dir == "" {
		dir = filepath.Dir(t.File)
	}
	dir, err := filepath.Abs(dir)
	r := &Result{reporter: &reporter{topology: t, dir: dir, fset: fset, texts: make(map[string][]byte)}}
	fail := func(suggestion, format string, args ...any) *Result {
		r.reporter.at(finding.PackageNotLoaded, spec.Text{}, suggestion, format, args...)
		return r
	}
	if err != nil {
		return fail("", "the folder of the topology cannot be found: %v", err)
	}
	r.Dir = filepath.Join(dir, filepath.FromSlash(path.Dir(t.Output.Value)))
	if env.failure != nil {
		return fail("set GOENV to a regular file, or to off", "%v", env.failure)
	}
	if info, err := os.Stat(r.Dir); err == nil && !info.IsDir() {
		r.reporter.at(finding.Unwritable, t.Output, "move it away, or choose another output",
			"cannot write %s: %s is not a folder", t.Output.Value, path.Dir(t.Output.Value))
		return r
	}
	m, err := findModule(r.Dir)
	if errors.Is(err, errNoModule) {
		return fail("run go mod init example.com/"+packageName(t.Name.Value), "%v", err)
	} else if err != nil {
		return fail("", "%v", err)
	}
	output := path.Base(t.Output.Value)
	source, err := readSource(fset, r.Dir, env, output, plan.PortsFile(output))
	if err != nil {
		return fail("", "the package's folder cannot be read: %v", firstLine(r.reporter.local(err.Error())))
	}
	r.reporter.texts = source.texts
	collides := r.collides(source, filepath.Join(dir, filepath.Base(t.File)))
	source.parseExcluded(fset)
	if l := source.absent(t); l != nil {
		return fail(l.remedy(), "the build leaves out all Go files of the package: %s declares package %s, %s", filepath.Base(l.name), l.file.Name.Name, l.why())
	}
	root := &root{module: m, path: m.importPath(r.Dir), source: source}
	name, ok := r.nameOf(source)
	root.name = name
	source.forget(name)
	p, findings := plan.Outline(t, root.planned())
	r.Outline = p
	r.reporter.findings = append(r.reporter.findings, findings...)
	for _, e := range source.errors {
		r.reporter.add(r.reporter.goFinding(finding.GoSyntax, e.Pos, "this Go file does not parse: "+e.Msg))
	}
	if ok && len(source.errors) == 0 && !collides {
		root.skeleton, root.outline, root.file, root.quiet = newSkeleton(p), p, t.File, in.Quiet
		r.root = root
	}
	return r
}

// ownFolder is the suggestion for two topologies in one package.
const ownFolder = "move one of the two, with its Go types, into a folder of its own"

// collides reports files that another topology has generated into the package. The user's
// files belong to that topology, so further findings would be misleading.
func (r *Result) collides(s *source, file string) bool {
	own := header.SourceOf(r.reporter.topology.Output.Value, filepath.Base(file))
	for _, g := range s.generated {
		if g.source == own {
			continue
		}
		other, err := os.Lstat(filepath.Join(r.Dir, filepath.FromSlash(g.source)))
		suggestion := ownFolder
		switch {
		case err == nil && isSame(other, file):
			continue // the topology was renamed in case only
		case err != nil && g.output:
			continue // the topology was renamed, and its outputs are written again
		case err != nil:
			suggestion = fmt.Sprintf("%s does not exist: delete %s", g.source, g.name)
		}
		r.reporter.at(finding.NameTaken, r.reporter.topology.Name, suggestion,
			"a package can hold the generated code of one topology, but %s is generated from %s", g.name, g.source)
		return true
	}
	return false
}

// isSame reports whether info describes this file.
func isSame(info os.FileInfo, file string) bool {
	own, err := os.Lstat(file)
	return err == nil && os.SameFile(info, own)
}

// nameOf is the package's name: the name in the files of the folder, else the name in the
// topology, else one derived from the topology's name.
func (r *Result) nameOf(s *source) (name string, ok bool) {
	t := r.reporter.topology
	if len(s.files) == 0 {
		if t.Package.Value != "" {
			return t.Package.Value, true
		}
		return packageName(t.Name.Value), true
	}
	name = s.files[0].Name.Name
	for _, f := range s.files {
		if f.Name.Name != name {
			r.reporter.atGo(finding.PackageNotLoaded, f.Name.Pos(), f.Name.Name, "", "a folder must hold one package, got %s (%s) and %s", name, filepath.Base(s.names[0]), f.Name.Name)
			return name, false
		}
	}
	if t.Package.Value != "" && t.Package.Value != name {
		r.reporter.at(finding.PackageNotLoaded, t.Package, fmt.Sprintf("write %q, or remove it", "package: "+name), "package must be %s as in the folder of the topology, got %s", name, t.Package.Value)
		return name, false
	}
	return name, true
}

// packageName derives a valid package name from any name.
func packageName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		}
		return -1
	}, name)
	name = strings.TrimLeft(name, "0123456789")
	if !token.IsIdentifier(name) || name == "init" || name == "main" {
		return name + "topology"
	}
	return name
}
