package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/bind"
	"github.com/topogen/topogen/templates"
)

// scaffold writes a stub for each missing processor or method into new files,
// returns their names and compiles again. Stubs are written only for topologies
// whose ports are right: the stubs mention them.
func (c *compilation) scaffold(ctx context.Context) ([]string, error) {
	var written []string
	for _, result := range c.results {
		if result.Plan == nil || len(result.Files) == 0 {
			continue
		}
		dir := packageDir(result)
		for _, missing := range result.Missing {
			if missing.Import != "" { // another package: its files are not ours to add to
				continue
			}
			text, err := templates.Stubs(stubsOf(result, missing))
			if err != nil {
				return written, err
			}
			path, err := createBeside(dir, stubStem(missing.Type), text)
			if err != nil {
				return written, fmt.Errorf("writing a stub: %w", err)
			}
			written = append(written, shown(path))
		}
	}
	if written == nil {
		return nil, nil
	}
	return written, c.generate(ctx)
}

// packageDir is the folder of the generated package.
func packageDir(result gen.Result) string {
	return filepath.Join(result.Dir, filepath.Dir(filepath.FromSlash(result.Topology.Output.Value)))
}

func stubsOf(result gen.Result, missing bind.Missing) templates.StubFile {
	processor := result.Plan.Processors[missing.Processor]
	file := templates.StubFile{
		Package: result.Plan.Package, Processor: processor.Name,
		Type: missing.Type, Declare: missing.Declare,
	}
	for _, method := range missing.Methods {
		file.Imports = append(file.Imports, method.Imports...)
		stub := templates.Stub{Name: method.Name, Signature: method.Signature, Reply: method.Reply}
		if method.Edge >= 0 {
			stub.Edge = result.Plan.EdgeText(method.Edge)
		}
		file.Methods = append(file.Methods, stub)
	}
	slices.Sort(file.Imports)
	file.Imports = slices.Compact(file.Imports)
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
			name += "_topogen"
		default:
			name += "_topogen" + strconv.Itoa(i)
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
