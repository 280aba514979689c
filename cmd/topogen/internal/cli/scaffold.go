package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/bind"
	"github.com/topogen/topogen/spec/finding"
	"github.com/topogen/topogen/templates"
)

// scaffold writes what is missing into new files, compiles again and says what
// was written: first the types of messages and what updates of machines lack,
// without which there are no ports, then a stub for each missing processor or method, which mention these.
func (c *compilation) scaffold(ctx context.Context, words io.Writer) error {
	for _, add := range []func() ([]string, error){c.scaffoldMessages, c.scaffoldStubs} {
		written, err := add()
		for _, name := range written {
			fmt.Fprintf(words, "topogen: wrote %s, which is yours to fill in\n", name)
		}
		if err == nil && written != nil {
			err = c.generate(ctx)
		}
		if err != nil {
			return err
		}
	}
	if slices.ContainsFunc(c.results, func(r gen.Result) bool { return len(r.Missing) > 0 && len(r.Files) == 0 }) {
		fmt.Fprintln(words, "topogen: no stubs were written for handlers: file and message types have to be right first")
		c.leaveOutMended()
	}
	for i := range c.report.findings { // none recommends what was just done
		f := &c.report.findings[i]
		f.Suggestion = strings.TrimSuffix(f.Suggestion, bind.ScaffoldHint)
	}
	return nil
}

// leaveOutMended drops the findings that scaffolding mends as soon as the others are
// mended, so that what is printed is what keeps it from doing so.
func (c *compilation) leaveOutMended() {
	others := slices.DeleteFunc(slices.Clone(c.report.findings), func(f finding.Finding) bool {
		return strings.HasSuffix(f.Suggestion, bind.ScaffoldHint)
	})
	if finding.HasErrors(others) {
		c.report.findings = others
	}
}

// scaffoldMessages declares the types of messages, and writes stubs for updates.
func (c *compilation) scaffoldMessages() ([]string, error) {
	var written []string
	for _, result := range c.results {
		if result.Plan == nil || result.Topology.Partial {
			continue
		}
		updates, err := writeStubs(result, true)
		written = append(written, updates...)
		if err != nil {
			return written, err
		}
		if len(result.Messages) == 0 {
			continue
		}
		file := templates.StubFile{Constraint: result.Plan.Constraint, Package: result.Plan.Package}
		for _, m := range result.Messages {
			file.Structs = append(file.Structs, templates.Struct{Name: m.Name, What: whatIs(result, m.Name), Fields: m.Fields})
		}
		path, err := createStubs(result, "messages", file)
		if err != nil {
			return written, err
		}
		written = append(written, path)
	}
	return written, nil
}

// whatIs says what a type that is missing is for.
func whatIs(result gen.Result, name string) string {
	for _, p := range result.Plan.Processors {
		if m := p.Machine; m != nil && m.State == name {
			return "the state of " + p.Name
		} else if m != nil && m.Update == name {
			return "what changes the state of " + p.Name
		} else if m != nil && m.Result == name {
			return "what an update of " + p.Name + " returns"
		}
	}
	return "a message of topology " + result.Topology.Name.Value
}

// scaffoldStubs writes stubs for topologies whose ports are right.
func (c *compilation) scaffoldStubs() ([]string, error) {
	var written []string
	for _, result := range c.results {
		if result.Plan == nil || len(result.Files) == 0 {
			continue
		}
		stubs, err := writeStubs(result, false)
		written = append(written, stubs...)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// writeStubs writes stubs for what processors lack, or for what their updates do.
func writeStubs(result gen.Result, updates bool) (written []string, err error) {
	for _, missing := range result.Missing {
		if missing.Import != "" || missing.Update != updates { // another package's files are not ours to add to
			continue
		}
		path, err := createStubs(result, stubStem(missing.Type), stubsOf(result, missing))
		if err != nil {
			return written, err
		}
		written = append(written, path)
	}
	return written, nil
}

// createStubs writes a new file and returns its name.
func createStubs(result gen.Result, stem string, file templates.StubFile) (string, error) {
	text, err := templates.Stubs(file)
	if err != nil {
		return "", err
	}
	dir := packageDir(result)
	err = os.MkdirAll(dir, 0o777)
	path := ""
	if err == nil {
		path, err = createBeside(dir, stem, text)
	}
	if err != nil {
		return "", fmt.Errorf("writing a stub: %w", err)
	}
	return shown(path), nil
}

// packageDir is the folder of the generated package.
func packageDir(result gen.Result) string {
	return filepath.Join(result.Dir, filepath.Dir(filepath.FromSlash(result.Topology.Output.Value)))
}

func stubsOf(result gen.Result, missing bind.Missing) templates.StubFile {
	processor := result.Plan.Processors[missing.Processor]
	file := templates.StubFile{
		Constraint: result.Plan.Constraint, Package: result.Plan.Package, Processor: processor.Name,
		Type: missing.Type, Declare: missing.Declare,
	}
	if missing.New != nil {
		file.New = &templates.Stub{Name: missing.New.Name, Signature: missing.New.Signature}
		for _, s := range missing.New.Config {
			file.Imports = append(file.Imports, s.Imports...)
			file.Structs = append(file.Structs, templates.Struct{Name: s.Name, What: "configuration of processor " + processor.Name, Fields: s.Fields})
		}
	}
	for _, method := range missing.Methods {
		file.Imports = append(file.Imports, method.Imports...)
		stub := templates.Stub{Name: method.Name, Signature: method.Signature, Reply: method.Reply}
		if method.Edge >= 0 {
			stub.Edge = result.Plan.EdgeText(method.Edge)
		}
		file.Methods = append(file.Methods, stub)
	}
	return file
}

// stubNamesMax bounds the search for a free name.
const stubNamesMax = 100

// stubStem names the file for a type in lower case without underscores: to the go
// command foo_test.go is a test, and foo_linux.go for one system.
func stubStem(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "") }

// createBeside writes a new file named after stem, whatever files of that name
// there are.
func createBeside(dir, stem string, text []byte) (path string, err error) {
	for i := range stubNamesMax {
		name := stem
		switch i {
		case 0:
		case 1:
			name += "_stubs"
		default:
			name += "_stubs" + strconv.Itoa(i)
		}
		path = filepath.Join(dir, name+".go")
		if err = createNew(path, text); !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
	return path, err
}

// createNew writes a file that does not exist yet; a part of it never stays.
func createNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		os.Remove(path)
	}
	return err
}
