package templates

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"slices"
	"strings"
	"text/template"
)

//go:embed stub.go.tmpl
var stubText embed.FS

// StubFile describes a Go file of stubs.
type StubFile struct {
	Constraint string // build constraint of the package's files; "": none
	Package    string
	Imports    []string
	Processor  string // as in the topology
	Type       string // type of the processor
	Declare    bool   // the type itself is missing
	Structs    []Struct
	New        *Stub // the missing constructor; nil if none is missing
	Methods    []Stub
}

// Struct is a type that the user completes.
type Struct struct {
	Name   string
	What   string   // ends the sentence that begins "Name is"
	Fields []string // each field with name, type and tag
}

// Stub is a method that the user completes.
type Stub struct {
	Name      string
	Signature string // func (p *Parser) ReceiveRaw(m Raw, out *ParserSender) error
	Edge      string // "feed -> parser: Raw"; "" if no edge needs it
	Reply     string // the type of its first result; "": error is the only result
}

// Stubs returns a Go file with stubs. The stubs compile. When they are called, they return an
// error that says that they are not written yet.
func Stubs(f StubFile) ([]byte, error) {
	if len(f.Methods) > 0 || f.New != nil {
		f.Imports = append([]string{"errors"}, f.Imports...)
	}
	f.Imports = grouped(f.Imports)
	t, err := template.New("stub.go.tmpl").Delims(left, right).ParseFS(stubText, "stub.go.tmpl")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, f); err != nil {
		return nil, err
	}
	formatted, err := format.Source(text.Bytes())
	if err != nil {
		return nil, fmt.Errorf("templates: the stub of %s: %w", f.Type, err)
	}
	return formatted, nil
}

// grouped returns the sorted import paths, with the standard library first. An empty path
// separates the two groups, for an empty line in the file.
func grouped(paths []string) []string {
	var standard, others []string
	for _, path := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") {
			others = append(others, path)
		} else {
			standard = append(standard, path)
		}
	}
	if len(standard) > 0 && len(others) > 0 {
		standard = append(standard, "")
	}
	return append(standard, others...)
}
