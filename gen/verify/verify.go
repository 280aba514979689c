package verify

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/topogen/topogen/gen/bind"
	"github.com/topogen/topogen/gen/emit"
	"github.com/topogen/topogen/spec/finding"
)

// File is a formatted Go file without its header.
type File struct {
	Name string // base name
	Body []byte
}

// Verified is what came of verifying.
type Verified struct {
	Files    []File            // nil where Own is not
	Own      []error           // what is wrong with generated code; nothing of it may be written
	Findings []finding.Finding // about the user's files

	kept []finding.Finding // more of them, for which nothing has to be checked again
}

// Options say how to verify.
type Options struct {
	// Types asks for real types, which finds the type errors of the user's files
	// too. Without, real types are used where bind needed them.
	Types bool
	// Whole has the bodies of all functions type-checked, where one of those that
	// differ in names suffices.
	Whole bool
}

// Files verifies what emit made for a bound topology. The error is the context's.
func Files(ctx context.Context, b *bind.Result, emitted []emit.File, o Options) (Verified, error) {
	if !o.Whole {
		v, err := files(ctx, b, emitted, o)
		if err != nil || len(v.Own) == 0 && len(v.Findings) == 0 {
			v.Findings = v.kept
			return v, err
		}
		// Of what is wrong all is to be said.
	}
	o.Whole = true
	v, err := files(ctx, b, emitted, o)
	v.Findings = append(v.Findings, v.kept...)
	return v, err
}

func files(ctx context.Context, b *bind.Result, emitted []emit.File, o Options) (Verified, error) {
	var parts []*part
	for _, f := range emitted {
		for _, source := range f.Parts {
			parts = append(parts, &part{name: f.Name, source: source, reduced: source})
		}
	}
	if !o.Whole {
		reduce(b, parts)
	}
	parallel(len(parts), func(i int) { parts[i].parse(b) })
	syntax := make([]*ast.File, len(parts))
	for i, p := range parts {
		if p.err != nil {
			return Verified{Own: []error{p.err}}, nil
		}
		syntax[i] = p.syntax
	}
	var formatting sync.WaitGroup
	formatting.Go(func() { parallel(len(parts), func(i int) { parts[i].format(b.Fset()) }) })
	v, err := typeCheck(ctx, b, syntax, o.Types || b.Typed)
	formatting.Wait()
	if err != nil || len(v.Own) > 0 {
		return v, err
	}
	for _, f := range emitted {
		body, err := join(b.Plan, f.Name, parts)
		if err != nil {
			return Verified{Own: []error{err}}, nil
		}
		v.Files = append(v.Files, File{f.Name, body})
	}
	return v, nil
}

// reduce leaves out of the parts what is like other things in them.
func reduce(b *bind.Result, parts []*part) {
	parallel(len(parts), func(i int) { parts[i].split() })
	known := classesOf(b.Plan, parts)
	parallel(len(parts), func(i int) { parts[i].choose(known) })
	mentioned := newMentions(b.Mentions())
	for _, p := range parts {
		mentioned.add(p)
	}
	parallel(len(parts), func(i int) { parts[i].reduce(mentioned) })
}

// typeCheck type-checks the parts with the user's files.
func typeCheck(ctx context.Context, b *bind.Result, syntax []*ast.File, real bool) (v Verified, err error) {
	if !real {
		if len(b.VerifySyntax(syntax, known()).Own) == 0 {
			return v, nil
		}
		// The reason may be that so little is known.
	}
	found, err := b.VerifyParsed(ctx, syntax)
	if len(found.Own) > 0 && len(b.VerifySyntax(syntax, known()).Own) == 0 {
		found.Own = []error{b.OtherRuntime()} // with ours it compiles
	}
	return Verified{Own: found.Own, Findings: found.User, kept: found.Kept}, err
}

// part is a part of a file on its way.
type part struct {
	name    string // of the file
	source  []byte
	reduced []byte // what is parsed of it
	syntax  *ast.File
	body    []byte
	err     error

	preamble []byte  // of source
	pieces   []piece // the rest of it; nil: it was not reduced
	declared []declaration
	scratch  []byte
}

func (p *part) parse(b *bind.Result) {
	p.syntax, p.err = parser.ParseFile(b.Fset(), filepath.Join(b.Dir, p.name), p.reduced, parser.ParseComments|parser.SkipObjectResolution)
	if p.err != nil {
		p.err = fmt.Errorf("%s: %w", p.name, p.err)
	}
}

// parallel calls do for 0 … n-1 on all processors of the machine.
func parallel(n int, do func(int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			do(i)
			<-slots
		})
	}
	group.Wait()
}
