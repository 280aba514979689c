package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/schemas"
	"github.com/topogen/topogen/spec/finding"
	"github.com/topogen/topogen/templates"
)

// Init creates a new topology.
type Init struct {
	Dir      string
	Template string
}

func newInit(chosen *command) *cobra.Command {
	i := Init{}
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Create a new topology, with handlers and tests",
		Long: `Create a new topology in DIR: the topology file, handlers, tests with a recorder and
with a Stepper, the schema and settings for editors, and a CI workflow. A go.mod is
written only if no module encloses DIR. If one of the files exists, nothing is written.

  pipeline   a source, stages and a sink, with a timer
  service    an HTTP server, instances by key, and a store that may block
  feedback   a cycle of processors that comes to rest`,
		Example: `  topogen init orders
  cd orders && go generate ./... && go test ./...

  topogen init quotes --template service`,
		Args: oneOf("a folder"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error {
			i.Dir = args[0]
			*chosen = i
			return nil
		},
	}
	addChoice(cmd, &i.Template, "template", "kind of topology", templates.Names()...)
	return cmd
}

func (i Init) run(ctx context.Context, s Streams) error {
	dir, err := filepath.Abs(i.Dir)
	if err != nil {
		return err
	}
	place, err := findPlace(dir)
	if err != nil {
		return err
	}
	var module *newModule // to write; nil if a module encloses dir
	if place.module == "" {
		module = describeModule(ctx, "example.com/"+place.name, s.Env)
	}
	files, err := templates.Project(i.Template, templates.Values{
		Name: place.name, Package: place.pkg, Schema: schemas.Topology, Go: goRelease, Replaced: replaced(ctx, s, place, module),
	})
	if err != nil {
		return err
	}
	if module != nil {
		files = append(files, module.files()...)
	}
	r := &report{streams: s, format: "text"}
	if ignored := place.ignored(dir); ignored != "" {
		r.add(finding.New(finding.Unwritable, dir, finding.Range{}, "",
			fmt.Sprintf("cannot create a project in %s: the go command ignores folders named %s in a module", onDisk(dir), ignored), "choose a folder with another name"))
	} else if name := filepath.Base(dir); device(name) {
		r.add(finding.New(finding.Unwritable, dir, finding.Range{}, "",
			fmt.Sprintf("cannot create a project in %s: %s is a device name on Windows, so the folder could not be checked out there", onDisk(dir), name), "choose a folder with another name"))
	} else {
		r.add(createAll(dir, files)...)
	}
	if err := r.finish(); err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "topogen: wrote %d files into %s\n", len(files), shellWord(onDisk(dir)))
	advise(ctx, s, dir, place, module)
	return nil
}

// replaced reports whether the go.mod of a new topology replaces topogen with a folder,
// or will do so.
func replaced(ctx context.Context, s Streams, p place, module *newModule) bool {
	if module != nil {
		return module.version == unreleased
	}
	text, err := os.ReadFile(filepath.Join(p.module, "go.mod"))
	if err != nil || modulePathOf(text) == modulePath {
		return false
	}
	mentioned := false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if slices.Contains(fields, modulePath) {
			mentioned = true
			if slices.Contains(fields, "=>") {
				return true
			}
		}
	}
	return !mentioned && describeModule(ctx, "", s.Env).version == unreleased
}

// createAll writes new files, all of them or none.
func createAll(dir string, files []templates.File) (findings []finding.Finding) {
	refuse := func(name string, err error) {
		message, suggestion := err.Error(), "make the folder writable, or choose another one"
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			message = e.Err.Error()
		}
		if errors.Is(err, fs.ErrExist) {
			message, suggestion = "the file exists", "move it away, or choose another folder"
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		findings = append(findings, finding.New(finding.Unwritable, path, finding.Range{}, "",
			fmt.Sprintf("cannot write %s: %s", onDisk(path), message), suggestion))
	}
	for _, file := range files {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(file.Name))); err == nil {
			refuse(file.Name, fs.ErrExist)
		}
		for name := path.Dir(file.Name); name != "."; name = path.Dir(name) {
			if folder := filepath.Join(dir, filepath.FromSlash(name)); isLink(folder) {
				refuse(file.Name, errors.New(onDisk(folder)+" is a symbolic link, which init does not follow"))
			}
		}
	}
	if len(findings) > 0 {
		return findings
	}
	var made []string // created folders and files, in order
	for _, file := range files {
		path := filepath.Join(dir, filepath.FromSlash(file.Name))
		folders, err := makeFolders(filepath.Dir(path))
		made = append(made, folders...)
		if err == nil {
			err = createNew(path, file.Text)
		}
		if err != nil {
			refuse(file.Name, err)
			for _, path := range slices.Backward(made) {
				os.Remove(path)
			}
			return findings
		}
		made = append(made, path)
	}
	return nil
}

// isLink reports whether a folder is a symbolic link.
func isLink(folder string) bool {
	info, err := os.Lstat(folder)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// makeFolders is like os.MkdirAll, and returns the folders that it created.
func makeFolders(dir string) (made []string, err error) {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return nil, &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New(onDisk(dir) + " is not a folder")}
		}
		return nil, nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if made, err = makeFolders(parent); err != nil {
			return made, err
		}
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return made, err
	}
	return append(made, dir), nil
}
