package bind

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

// typeErrorsMax bounds what is said about a package that is broken all over.
const typeErrorsMax = 100

// Verified is what type checking a package together with generated files found.
type Verified struct {
	Own  []error           // in the generated files: nothing of them may be written
	User []finding.Finding // TG311, in the user's files
	Kept []finding.Finding // TG321, in handlers; looked for only where nothing else is wrong
}

// Verify type-checks the package, bodies included, with the given generated
// files (by base name) in place of those on disk. What is undefined because it
// would stand in a generated file that is not among them is no error. Without
// any file it checks what the user wrote against what would be generated.
//
// It loads types where Bind did without; where that fails, a TG314 takes the place
// of type errors, and nothing has been checked.
func (r *Result) Verify(ctx context.Context, generated map[string][]byte) (Verified, error) {
	var v Verified
	if r.root == nil {
		return v, nil
	}
	var files []*ast.File
	for _, name := range slices.Sorted(maps.Keys(generated)) {
		file, err := parser.ParseFile(r.Fset(), filepath.Join(r.Dir, name), generated[name], parser.SkipObjectResolution)
		if list, ok := err.(scanner.ErrorList); ok {
			for _, e := range list {
				v.Own = append(v.Own, fmt.Errorf("%s:%d:%d: %s", name, e.Pos.Line, e.Pos.Column, e.Msg))
			}
			return v, nil
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		file, err := parser.ParseFile(r.Fset(), skeletonFile, r.root.skeleton.text, parser.SkipObjectResolution)
		if err != nil {
			return v, err
		}
		files = append(files, file)
	}
	return r.VerifyParsed(ctx, files)
}

// Fset is where the positions of everything that was parsed are to be found.
func (r *Result) Fset() *token.FileSet { return r.reporter.fset }

// VerifyParsed is Verify for generated files that were parsed with Fset.
func (r *Result) VerifyParsed(ctx context.Context, generated []*ast.File) (Verified, error) {
	var v Verified
	if r.root == nil {
		return v, nil
	}
	if err := r.listFor(ctx, slices.Concat(generated, r.root.source.files)); err != nil {
		if ctx.Err() != nil {
			return v, ctx.Err()
		}
		if r.open {
			return v, nil // Bind has said it
		}
		f := finding.New(finding.PackageNotLoaded, r.reporter.topology.File, r.reporter.topology.Name.At, r.reporter.topology.Name.Pointer, err.Error(), "")
		v.User = append(v.User, f)
		return v, nil
	}
	var pkg *types.Package
	v, err := watched(ctx, r.limits(generated), func() Verified {
		r.loader.busy[r.root.path] = true
		defer delete(r.loader.busy, r.root.path)
		v, checked := r.verify(generated, r.loader)
		pkg = checked
		return v
	})
	if err == nil {
		if pkg != nil {
			v.Kept = r.lifetimes(ctx, pkg, generated)
		}
		return v, ctx.Err()
	}
	found := len(r.reporter.findings)
	err = r.giveUp(ctx, err)
	v.User = append(v.User, r.reporter.findings[found:]...)
	return v, err
}

// VerifySyntax is VerifyParsed without loading anything: known has the packages
// that generated files import of themselves, and of others nothing is said. What
// it finds in generated files may have its reason there.
func (r *Result) VerifySyntax(generated []*ast.File, known types.Importer) Verified {
	if r.root == nil {
		return Verified{}
	}
	v, err := watched(context.Background(), r.limits(generated), func() Verified {
		v, _ := r.verify(generated, known)
		return v
	})
	if err != nil {
		r.leave(err) // VerifyParsed will say it
		return Verified{Own: []error{err}}
	}
	v.User = nil
	return v
}

// verify type-checks the package. It gives the package only where that has no
// errors at all.
func (r *Result) verify(generated []*ast.File, importer types.Importer) (v Verified, pkg *types.Package) {
	fset := r.Fset()
	files := slices.Concat(generated, r.root.source.files)
	clean := true
	ours := make(map[string]bool)
	for _, file := range generated {
		ours[fset.PositionFor(file.Package, false).Filename] = true
	}
	names, pending := r.pending(files)
	config := &types.Config{
		GoVersion:   r.root.module.goVersion,
		FakeImportC: true,
		Importer:    importer,
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
			case undefined && (pending[name] || r.follows(name)):
			case r.said[e.Pos]:
			case twice && names[taken]: // TG312 has said it
			case at.Filename == skeletonFile: // what is wrong in it is wrong in the topology, and was found
			case ours[at.Filename]:
				v.Own = append(v.Own, fmt.Errorf("%s:%d:%d: %s", filepath.Base(at.Filename), at.Line, at.Column, r.reporter.local(e.Msg)))
			case len(v.User) < typeErrorsMax:
				v.User = append(v.User, r.reporter.goFinding(finding.GoType, at, firstLine(e.Msg)))
			}
		},
	}
	pkg, _ = config.Check(r.root.path, fset, files, nil) // its errors went to config.Error
	v.User = finding.Sort(v.User)
	if !clean {
		return v, nil
	}
	return v, pkg
}

// listFor lists what files import and was not foreseen.
func (r *Result) listFor(ctx context.Context, files []*ast.File) error {
	if err := r.loader.ready(ctx); err != nil {
		return err
	}
	return r.loader.list(ctx, imported(files))
}

// pending gives the names that generated files declare, and those of them that
// files do not.
func (r *Result) pending(files []*ast.File) (names, pending map[string]bool) {
	declared := declared(files)
	names, pending = make(map[string]bool), make(map[string]bool)
	for _, n := range r.Plan.Names() {
		names[n.Ident] = true
		pending[n.Ident] = declared[n.Ident] == nil
	}
	return names, pending
}
