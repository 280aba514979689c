package templates

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template"
)

// left and right are the delimiters of template actions.
const left, right = "{%", "%}"

// suffix is the suffix of all files under project. Without it the go command would treat the
// Go files as packages.
const suffix = ".tmpl"

//go:embed all:project
var projects embed.FS

// Names lists the projects. The first is the project for beginners.
func Names() []string { return []string{"pipeline", "service", "feedback"} }

// Values are the values that are inserted into a project's files.
type Values struct {
	Name    string // name of the topology
	Package string // package of the files
	Schema  []byte // contents of topology.schema.json
	Go      string // Go release for CI: "1.26"

	Replaced bool // go.mod replaces topogen with a folder
}

// File is a file of a project.
type File struct {
	Name string // slash path relative to the project's folder
	Text []byte
}

// Project returns the files of the named project, sorted by name.
func Project(name string, v Values) ([]File, error) {
	files := []File{{Name: "topology.schema.json", Text: v.Schema}}
	for _, folder := range []string{"all", name} {
		root := path.Join("project", folder)
		err := fs.WalkDir(projects, root, func(at string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := render(at, v)
			if err != nil {
				return fmt.Errorf("templates: %s: %w", at, err)
			}
			files = append(files, File{Name: strings.TrimSuffix(strings.TrimPrefix(at, root+"/"), suffix), Text: text})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

func render(at string, v Values) ([]byte, error) {
	t, err := template.New(path.Base(at)).Delims(left, right).ParseFS(projects, at)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := t.Execute(&text, v); err != nil {
		return nil, err
	}
	if strings.HasSuffix(at, ".go"+suffix) { // a longer name changes the alignment
		return format.Source(text.Bytes())
	}
	return text.Bytes(), nil
}
