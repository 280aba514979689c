package verify

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"path/filepath"
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

// Verified is the result of verification.
type Verified struct {
	Files    []File            // nil if Own is not empty
	Own      []error           // errors in generated code; then nothing may be written
	Findings []finding.Finding // about the user's files
}

// Files verifies the output of emit for a bound topology. It returns only errors of the context.
func Files(ctx context.Context, b *bind.Result, emitted []emit.File) (Verified, error) {
	var parts []*part
	for _, f := range emitted {
		for _, source := range f.Parts {
			parts = append(parts, &part{name: f.Name, source: source})
		}
	}
	emit.Parallel(len(parts), func(i int) { parts[i].parse(b) })
	syntax := make([]*ast.File, len(parts))
	for i, p := range parts {
		if p.err != nil {
			return Verified{Own: []error{p.err}}, nil
		}
		syntax[i] = p.syntax
	}
	var formatting sync.WaitGroup
	formatting.Go(func() { emit.Parallel(len(parts), func(i int) { parts[i].format(b.Fset()) }) })
	found, err := b.Verify(ctx, syntax)
	formatting.Wait()
	v := Verified{Own: found.Own, Findings: found.User}
	if err != nil || len(v.Own) > 0 {
		return v, err
	}
	for _, f := range emitted {
		v.Files = append(v.Files, File{f.Name, join(b.Outline, f.Name, parts)})
	}
	return v, nil
}

// part is a part of a file during verification.
type part struct {
	name   string // of the file
	source []byte
	syntax *ast.File
	body   []byte
	err    error
}

func (p *part) parse(b *bind.Result) {
	p.syntax, p.err = parser.ParseFile(b.Fset(), filepath.Join(b.Dir, p.name), p.source, parser.ParseComments|parser.SkipObjectResolution)
	if p.err != nil {
		p.err = fmt.Errorf("%s: %w", p.name, p.err)
	}
}
