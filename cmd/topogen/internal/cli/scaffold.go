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

// scaffold writes stubs into new files, compiles again, and prints the names of the
// files. It first writes the types of messages and the missing parts of updates, because
// there are no ports without them. Then it writes the stubs of processors and methods,
// which use the ports.
func (c *compilation) scaffold(ctx context.Context, words io.Writer) error {
	for _, add := range []func() ([]string, error){c.scaffoldMessages, c.scaffoldStubs} {
		written, err := add()
		for _, name := range written {
			fmt.Fprintf(words, "topogen: wrote %s for you to complete\n", name)
		}
		if err == nil && written != nil {
			err = c.generate(ctx)
		}
		if err != nil {
			return err
		}
	}
	if slices.ContainsFunc(c.results, func(r gen.Result) bool { return len(r.Missing) > 0 && len(r.Files) == 0 }) {
		fmt.Fprintln(words, "topogen: no stubs were written for handlers, because the topology file or a message type has errors")
		c.dropRepairable()
	}
	for i := range c.report.findings { // do not suggest --scaffold, which has just run
		f := &c.report.findings[i]
		f.Suggestion = strings.TrimSuffix(f.Suggestion, bind.ScaffoldHint)
	}
	return nil
}

// dropRepairable drops the findings that scaffolding will repair once the other findings
// are repaired. So only the findings that prevent scaffolding are printed.
func (c *compilation) dropRepairable() {
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

// whatIs describes the purpose of a missing type.
func whatIs(result gen.Result, name string) string {
	for _, p := range result.Plan.Processors {
		if m := p.Machine; m != nil && m.State == name {
			return "the state of " + p.Name
		} else if m != nil && m.Update == name {
			return "an update of the state of " + p.Name
		} else if m != nil && m.Result == name {
			return "the result of an update of " + p.Name
		}
	}
	return "a message of topology " + result.Topology.Name.Value
}

// scaffoldStubs writes stubs for topologies whose ports are valid.
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

// writeStubs writes stubs for the missing methods of processors, or of updates.
func writeStubs(result gen.Result, updates bool) (written []string, err error) {
	for _, missing := range result.Missing {
		if missing.Import != "" || missing.Update != updates { // topogen adds no files to other packages
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

// packageDir returns the folder of the generated package.
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
			file.Structs = append(file.Structs, templates.Struct{Name: s.Name, What: "the configuration of processor " + processor.Name, Fields: s.Fields})
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

// stubNamesMax limits the search for a free file name.
const stubNamesMax = 100

// stubStem returns the file name for a type, in lower case and without underscores. The
// go command treats foo_test.go as a test, and foo_linux.go as a file for one system.
func stubStem(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "") }

// createBeside writes a new file named after stem. It adds a suffix if the name is taken.
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

// createNew writes a new file. After an error it leaves no part of the file.
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
