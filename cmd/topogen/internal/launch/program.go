package launch

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"text/template"
	"time"
)

// Program is a topology to run.
type Program struct {
	Name    string   // of the topology
	Dir     string   // absolute folder of the generated package
	Package string   // name of the package
	Import  string   // import path of the package
	Wiring  string   // absolute path of the generated file that declares New
	Edges   []string // "feed -> parser: Raw", by index
	Args    []string
	Flags   []string // for go build
	Faults  bool     // the topology file handles failures
	Spawns  bool     // the program starts its own executable for instances with isolation: process
	Quiet   bool     // print no line about the nodes
	Nodes   []string // names of the nodes that Run starts; empty: one process runs the whole topology
}

//go:embed *.tmpl faults/faults.go
var texts embed.FS

// reportEvery is the interval between reports of figures and updates of the status line.
const reportEvery = 200 * time.Millisecond

// values are the values in the templates of a program. The descriptor 0 means none.
type values struct {
	Program
	Control int   // the program drains when it reads a byte or the end from it
	Status  int   // the program writes figures to it
	Every   int64 // milliseconds between two reports of figures

	SignalWindow int64  // milliseconds within which two signals count as one
	TrustDomain  string // of the certificates of the nodes
}

// layers are the files of the overlay with which a program is compiled.
type layers struct {
	temp    string
	replace map[string]string
}

// add overlays path, which need not exist, with text.
func (l *layers) add(path string, text []byte) error {
	file := filepath.Join(l.temp, strconv.Itoa(len(l.replace))+".go")
	l.replace[path] = file
	return os.WriteFile(file, text, 0o600)
}

// overlay writes the file for go build -overlay.
func (l *layers) overlay() (path string, err error) {
	text, err := json.Marshal(map[string]any{"Replace": l.replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(l.temp, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// compose adds the files of the program to its package, and returns the folder to
// compile, relative to the package.
func (v values) compose(l *layers) (target string, err error) {
	if v.Package == "main" {
		if v.Status == 0 && !v.Faults {
			return ".", nil
		}
		if err := v.hook(l); err != nil {
			return "", err
		}
		return ".", v.faults(l, v.Dir)
	}
	folder, err := v.command(l, "topogen-run", "main.go.tmpl")
	if err != nil {
		return "", err
	}
	return "./" + filepath.Base(folder), v.faults(l, folder)
}

// command adds package main in a folder below the package that does not exist on disk.
func (v values) command(l *layers, name, template string) (folder string, err error) {
	folder = filepath.Join(v.Dir, name)
	for i := 2; exists(folder); i++ {
		folder = filepath.Join(v.Dir, name+strconv.Itoa(i))
	}
	text, err := v.render(template)
	if err != nil {
		return "", err
	}
	return folder, l.add(filepath.Join(folder, "main.go"), text)
}

// faults adds the code that prints failures to package main.
func (v values) faults(l *layers, folder string) error {
	if !v.Faults {
		return nil
	}
	text, err := texts.ReadFile("faults/faults.go")
	if err != nil {
		return err
	}
	text = bytes.Replace(text, []byte("\npackage faults\n"), []byte("\npackage main\n"), 1)
	return l.add(filepath.Join(folder, "topogen_run_faults.go"), text)
}

// hook makes New report figures and failures to the user's main function. The generated
// New is renamed, and an added file has a New that calls it.
func (v values) hook(l *layers) error {
	wiring, err := os.ReadFile(v.Wiring)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, v.Wiring, wiring, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Name.Name != "New" {
			continue
		}
		at := files.Position(f.Name.Pos()).Offset
		wiring = bytes.Join([][]byte{wiring[:at], wiring[at+len("New"):]}, []byte("topogenNew"))
		if err := l.add(v.Wiring, wiring); err != nil {
			return err
		}
		text, err := v.render("hook.go.tmpl")
		if err != nil {
			return err
		}
		return l.add(filepath.Join(v.Dir, "topogen_run_hook.go"), text)
	}
	return fmt.Errorf("%s declares no New", v.Wiring)
}

func (v values) render(name string) ([]byte, error) {
	t, err := template.ParseFS(texts, "*.tmpl")
	if err != nil {
		return nil, err
	}
	v.Every, v.SignalWindow, v.TrustDomain = reportEvery.Milliseconds(), signalWindow.Milliseconds(), trustDomain
	var text bytes.Buffer
	err = t.ExecuteTemplate(&text, name, v)
	return text.Bytes(), err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}
