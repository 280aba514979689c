package bind

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/topogen/topogen/spec/finding"
)

// typeErrorsMax bounds the number of type errors that are reported for a package.
const typeErrorsMax = 100

// Verified has the errors from type-checking a package together with generated files.
type Verified struct {
	Own  []error           // in the generated files; if there are any, no file may be written
	User []finding.Finding // TG311 in the user's files; TG321 in handlers if there are no other errors
}

// Fset has the positions of all parsed files.
func (r *Result) Fset() *token.FileSet { return r.reporter.fset }

// Verify type-checks the package, including function bodies, with the given generated
// files instead of the files on disk. The given files must be parsed with Fset. A name that
// is undefined because its generated file is not given is not an error. If types cannot be
// loaded, the result is a TG314 without any check.
func (r *Result) Verify(ctx context.Context, generated []*ast.File) (v Verified, err error) {
	if r.root == nil || r.Facts == nil {
		return v, nil // Bind has reported why
	}
	files := slices.Concat(generated, r.root.source.files)
	err = r.loader.failure // the check of another package took too long
	if err == nil {
		err = r.loader.list(ctx, imported(files))
	}
	if err == nil {
		if v, err = r.checkWhole(ctx, generated); err == nil {
			v.User = append(v.User, r.dependencyErrors(files)...)
		}
	}
	if ctx.Err() != nil {
		return v, ctx.Err()
	}
	if err != nil {
		at := r.reporter.topology.Name
		v.User = append(v.User, finding.New(finding.PackageNotLoaded, r.reporter.topology.File, at.At, at.Pointer, err.Error(), ""))
	}
	return v, nil
}

// checkWhole type-checks the package. If there are no errors, it also checks the handlers.
func (r *Result) checkWhole(ctx context.Context, generated []*ast.File) (Verified, error) {
	var clean bool
	v, err := within(ctx, r.loader.timeout, r.checking(), func() (v Verified) {
		r.loader.inProgress[r.root.path] = true
		defer delete(r.loader.inProgress, r.root.path)
		v, clean = r.verify(generated)
		return v
	})
	if err != nil {
		r.loader.failure = err
		return v, err
	}
	if clean {
		v.User = r.lifetimes(ctx, generated)
	}
	return v, nil
}

// verify type-checks the package. clean reports that it has no errors, except for errors that the
// stand-in for C may cause.
func (r *Result) verify(generated []*ast.File) (v Verified, clean bool) {
	fset := r.Fset()
	files := slices.Concat(generated, r.root.source.files)
	runtime, notVendored := false, ""
	clean = true
	ours := make(map[string]bool)
	for _, file := range generated {
		ours[fset.PositionFor(file.Package, false).Filename] = true
	}
	names, pending := r.pending(files)
	standIn := sync.OnceValue(func() bool { return r.loader.usesC(r.root.path) }) // not called before all imports are read
	config := &types.Config{
		GoVersion:   r.root.module.goVersion,
		FakeImportC: true,
		Importer:    r.loader,
		Sizes:       r.loader.env.sizes(),
		Error: func(err error) {
			e, ok := err.(types.Error)
			if !ok || strings.HasPrefix(e.Msg, "\t") {
				return // a continuation of the previous error
			}
			if !independentOfC(e.Msg) && standIn() {
				return // with the real types of C this may be correct; the compiler reports it if not
			}
			clean = false
			at := fset.PositionFor(e.Pos, false)
			name, undefined := strings.CutPrefix(e.Msg, "undefined: ")
			taken, twice := strings.CutSuffix(e.Msg, " redeclared in this block")
			switch {
			case undefined && pending[name]:
			case undefined && r.causedBy(e.Pos, name): // a finding about the other topology reports it
			case r.binder.quoted[e.Pos]:
			case twice && names[taken]: // a TG312 reports it
			case at.Filename == skeletonFile: // its errors are errors of the topology, which were reported
			case ours[at.Filename] && r.notVendored(e.Msg) != "":
				notVendored = r.notVendored(e.Msg)
			case ours[at.Filename]:
				runtime = runtime || undefined && r.ofRuntime(generated, name) || strings.HasPrefix(e.Msg, "could not import "+runtimeModule+"/")
				v.Own = append(v.Own, fmt.Errorf("%s:%d:%d: %s", filepath.Base(at.Filename), at.Line, at.Column, r.reporter.local(e.Msg)))
			case len(v.User) < typeErrorsMax:
				f := r.reporter.goFinding(finding.GoType, at, firstLine(e.Msg))
				if f.Suggestion = r.edgeForSend(e.Msg); undefined {
					f.Suggestion = r.buildFirst(e.Pos, name)
				}
				v.User = append(v.User, f)
			}
		},
	}
	pkg, _ := config.Check(r.root.path, fset, files, nil) // errors go to config.Error
	if r.loader.imports(r.root.path) {
		r.root.verified = pkg
	}
	v.User = finding.Sort(v.User)
	if runtime {
		v.Own = []error{r.wrongRuntimeError()}
	} else if notVendored != "" {
		v.User = append(v.User, r.vendorFirst(notVendored))
	}
	return v, clean
}

var undefinedSend = regexp.MustCompile(`\.Send(\w+) undefined \(type \*(\w+)Sender has no field or method \w+\)$`)

// edgeForSend returns the suggestion for a type error about a method of a sender that is not
// generated, because no edge of the processor carries the message. For other errors it returns "".
func (r *Result) edgeForSend(message string) string {
	m := undefinedSend.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	if _, ok := r.binder.checked.pkg.Scope().Lookup(m[1]).(*types.TypeName); !ok {
		return ""
	}
	for _, p := range r.Outline.Processors {
		if p.Ident == m[2] {
			return fmt.Sprintf("no edge from %q carries %s: add %q to edges", p.Name, m[1], "- "+p.Name+" -> TO: "+m[1])
		}
	}
	return ""
}

// ofRuntime reports whether a qualified name in a generated file, such as piper.Pool, is from
// a package of the runtime.
func (r *Result) ofRuntime(generated []*ast.File, name string) bool {
	alias, _, _ := strings.Cut(name, ".")
	for _, file := range generated {
		for _, i := range file.Imports {
			importPath, _ := strconv.Unquote(i.Path.Value) // valid, because it was parsed
			local := path.Base(importPath)
			if i.Name != nil {
				local = i.Name.Name
			}
			if local == alias && strings.HasPrefix(importPath, runtimeModule+"/") {
				return true
			}
		}
	}
	return false
}

// pending returns the names that generated files declare. Of these, pending has the names that
// the given files do not declare.
func (r *Result) pending(files []*ast.File) (names, pending map[string]bool) {
	declared := declared(files)
	names, pending = make(map[string]bool), make(map[string]bool)
	for _, n := range r.Outline.Names() {
		names[n.Ident] = true
		pending[n.Ident] = declared[n.Ident] == nil
		if t := r.binder.renamed[n.Processor]; t != "" { // the names that would be generated if the processor had the name of its type
			pending[strings.Replace(n.Ident, r.Outline.Processors[n.Processor].Ident, t, 1)] = true
		}
	}
	return names, pending
}
