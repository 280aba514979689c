package templates

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"strings"
	"text/template"
)

//go:embed stub.go.tmpl
var stubText embed.FS

// StubFile is what a Go file of stubs holds.
type StubFile struct {
	Package   string
	Imports   []string
	Processor string // as in the topology
	Type      string // of the processor
	Declare   bool   // the type itself is missing
	Methods   []Stub
}

// Stub is a method that is to be written by hand.
type Stub struct {
	Name      string
	Signature string // func (p *Parser) ReceiveRaw(m *Raw, out *ParserSender) error
	Edge      string // "feed -> parser: Raw"; "" where no edge asks for it
	Reply     string // the type of its first result; "" for none
}

// Stubs returns a Go file with stubs: they compile, and say that they are to be
// written when they are called.
func Stubs(f StubFile) ([]byte, error) {
	view := struct {
		StubFile
		Standard, Others []string // imports, as gofmt likes them
	}{StubFile: f}
	if len(f.Methods) > 0 {
		view.Standard = []string{"errors"}
	}
	for _, path := range f.Imports {
		if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
			view.Others = append(view.Others, path)
		} else {
			view.Standard = append(view.Standard, path)
		}
	}
	t, err := template.New("stub.go.tmpl").Delims(left, right).ParseFS(stubText, "stub.go.tmpl")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, view); err != nil {
		return nil, err
	}
	formatted, err := format.Source(text.Bytes())
	if err != nil {
		return nil, fmt.Errorf("templates: the stub of %s: %w", f.Type, err)
	}
	return formatted, nil
}
