package bind

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

// typeErrorsMax bounds what is said about a package that is broken all over.
const typeErrorsMax = 100

// Verified is what type checking a package together with generated files found.
type Verified struct {
	Own  []error           // in the generated files: nothing of them may be written
	User []finding.Finding // TG311 in the user's files; TG321 in handlers where nothing else is wrong
}

// Fset is where the positions of everything that was parsed are to be found.
func (r *Result) Fset() *token.FileSet { return r.reporter.fset }

// Verify type-checks the package, bodies included, with the given generated files,
// which were parsed with Fset, in place of those on disk. What is undefined because it
// would stand in a generated file that is not among them is no error. Where types cannot
// be loaded, a TG314 takes the place of type errors, and nothing has been checked.
func (r *Result) Verify(ctx context.Context, generated []*ast.File) (v Verified, err error) {
	if r.root == nil || r.Facts == nil {
		return v, nil // Bind has said why
	}
	files := slices.Concat(generated, r.root.source.files)
	err = r.loader.failure // the check of another package took too long
	if err == nil {
		err = r.loader.list(ctx, imported(files))
	}
	if err == nil {
		if v, err = r.checkWhole(ctx, generated); err == nil {
			v.User = append(v.User, r.unsound(files)...)
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

// checkWhole type-checks the package, and looks at handlers where nothing is wrong.
func (r *Result) checkWhole(ctx context.Context, generated []*ast.File) (Verified, error) {
	var clean bool
	v, err := within(ctx, r.loader.patience, r.checking(), func() (v Verified) {
		r.loader.busy[r.root.path] = true
		defer delete(r.loader.busy, r.root.path)
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

// verify type-checks the package. It is clean where it has no errors at all.
func (r *Result) verify(generated []*ast.File) (v Verified, clean bool) {
	fset := r.Fset()
	files := slices.Concat(generated, r.root.source.files)
	runtime := false
	clean = true
	ours := make(map[string]bool)
	for _, file := range generated {
		ours[fset.PositionFor(file.Package, false).Filename] = true
	}
	names, pending := r.pending(files)
	config := &types.Config{
		GoVersion:   r.root.module.goVersion,
		FakeImportC: true,
		Importer:    r.loader,
		Sizes:       r.loader.env.sizes(),
		Error: func(err error) {
			clean = false
			e, ok := err.(types.Error)
			if !ok || strings.HasPrefix(e.Msg, "\t") {
				return // the second half of the error before
			}
			at := fset.PositionFor(e.Pos, false)
			name, undefined := strings.CutPrefix(e.Msg, "undefined: ")
			taken, twice := strings.CutSuffix(e.Msg, " redeclared in this block")
			switch {
			case undefined && pending[name]:
			case r.binder.said[e.Pos]:
			case twice && names[taken]: // TG312 has said it
			case at.Filename == skeletonFile: // what is wrong in it is wrong in the topology, and was found
			case ours[at.Filename]:
				runtime = runtime || undefined && r.ofRuntime(generated, name) || strings.HasPrefix(e.Msg, "could not import "+home+"/")
				v.Own = append(v.Own, fmt.Errorf("%s:%d:%d: %s", filepath.Base(at.Filename), at.Line, at.Column, r.reporter.local(e.Msg)))
			case len(v.User) < typeErrorsMax:
				v.User = append(v.User, r.reporter.goFinding(finding.GoType, at, firstLine(e.Msg)))
			}
		},
	}
	config.Check(r.root.path, fset, files, nil) // its errors went to config.Error
	v.User = finding.Sort(v.User)
	if runtime {
		v.Own = []error{r.otherRuntime()}
	}
	return v, clean
}

// ofRuntime reports whether what a generated file calls name, such as piper.Pool, is of a
// package of the runtime.
func (r *Result) ofRuntime(generated []*ast.File, name string) bool {
	alias, _, _ := strings.Cut(name, ".")
	for _, file := range generated {
		for _, i := range file.Imports {
			importPath, _ := strconv.Unquote(i.Path.Value) // it was parsed
			local := path.Base(importPath)
			if i.Name != nil {
				local = i.Name.Name
			}
			if local == alias && strings.HasPrefix(importPath, home+"/") {
				return true
			}
		}
	}
	return false
}

// pending gives the names that generated files declare, and those of them that
// files do not.
func (r *Result) pending(files []*ast.File) (names, pending map[string]bool) {
	declared := declared(files)
	names, pending = make(map[string]bool), make(map[string]bool)
	for _, n := range r.Outline.Names() {
		names[n.Ident] = true
		pending[n.Ident] = declared[n.Ident] == nil
		if t := r.binder.renamed[n.Processor]; t != "" { // what would be generated if the processor were called like its type
			pending[strings.Replace(n.Ident, r.Outline.Processors[n.Processor].Ident, t, 1)] = true
		}
	}
	return names, pending
}
