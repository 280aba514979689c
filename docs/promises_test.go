package docs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"gopkg.in/yaml.v3"

	"github.com/topogen/topogen/internal/test/memdir"
)

// noTestYet is the tests of a row for which no test is known.
const noTestYet = "none yet"

// dataFolder has the promises, and the rows of the documents and systems that topogen is modelled on.
const dataFolder = "docs/data"

// promisesFile has the promises of topogen, and promisesPage those of them that users need.
const (
	promisesFile = dataFolder + "/promises.yml"
	promisesPage = "docs/reference/promises.md"
)

// group is a part of a file in dataFolder.
type group struct {
	Name string `yaml:"group"`
	Page string // the page that explains its promises
	Rows []row
}

// row is a promise, or what topogen does about a requirement, a mistake, a fault or a key of another system.
type row struct {
	Promise  string
	Row      string // the number of a requirement or mistake
	What     string // the requirement, mistake, fault or key
	Packages []string
	Here     string // what topogen does
	Tests    proofs
	Page     string // the page that it refers to, if this is not the page of the group
	User     bool   // whether promisesPage has the row
}

// proofs are the names of tests: a list, or noTestYet.
type proofs []string

func (p *proofs) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.Value == noTestYet {
		return nil
	}
	var list []string
	if err := node.Decode(&list); err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("line %d: name a test, or write %s", node.Line, noTestYet)
	}
	*p = list
	return nil
}

// text is the sentence that identifies a row.
func (r row) text() string { return r.Promise + r.What }

// readData reads a file of dataFolder.
func readData(t *testing.T, name string) (groups []group) {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(src))
	decoder.KnownFields(true)
	if err := decoder.Decode(&groups); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return groups
}

// TestPromises checks that each row of the files in docs/data names tests that exist and run, and that each
// group of promises names a page that exists.
func TestPromises(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, dataFolder, "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files in %s, and the error %v", len(files), dataFolder, err)
	}
	tests := newChecker(repository)
	for _, file := range files {
		name := dataFolder + "/" + filepath.Base(file)
		known := make(map[string]bool)
		rows, open := 0, 0
		for _, g := range readData(t, name) {
			if isPromises := name == promisesFile; g.Name == "" || isPromises != (g.Page != "") || isPromises && !tests.exists(g.Page) {
				t.Errorf("%s: the group %q must have a name, and in %s a page that exists, got %q", name, g.Name, promisesFile, g.Page)
			}
			for _, r := range g.Rows {
				rows++
				if (name == promisesFile) != (r.Promise != "") || (r.What != "") != (r.Here != "") || (r.Promise != "") == (r.What != "") {
					t.Errorf("%s: a row must have a promise, and in other files `what` and `here`, got %+v", name, r)
				}
				if key := r.Row + r.text(); r.What != "(none)" && known[key] {
					t.Errorf("%s: %s: the row is there twice", name, key)
				} else {
					known[key] = true
				}
				for _, path := range append(slices.Clone(r.Packages), r.Page) {
					if !tests.exists(path) {
						t.Errorf("%s: %s: %s does not exist", name, r.text(), path)
					}
				}
				if len(r.Tests) == 0 {
					open++
				}
				for _, proof := range r.Tests {
					if problem := tests.problem(proof); problem != "" {
						t.Errorf("%s: %s: %s %s", name, r.text(), proof, problem)
					}
				}
			}
		}
		t.Logf("%s: %d rows, %d without a test", name, rows, open)
	}
}

// TestPromisesPage compares the page of promises for users with the data. -update writes it.
func TestPromisesPage(t *testing.T) {
	var want strings.Builder
	want.WriteString(`# Promises

This page answers the question whether topogen promises something. ` + "`go test ./docs -run TestPromisesPage -update`" + ` makes it from
[promises.yml](../data/promises.yml), which has all promises with the tests that prove them.
`)
	for _, g := range readData(t, promisesFile) {
		open := false
		for _, r := range g.Rows {
			if !r.User {
				continue
			}
			if !open {
				fmt.Fprintf(&want, "\n## %s\n\nDetails: %s.\n\n", g.Name, linkTo(t, g.Page))
				open = true
			}
			text := r.Promise
			if r.Page != "" {
				text += " See " + linkTo(t, r.Page) + "."
			}
			fmt.Fprintf(&want, "- %s\n", text)
		}
	}
	file := filepath.Join(repository, promisesPage)
	got, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if string(got) == want.String() {
		return
	}
	if !*update {
		t.Errorf("%s differs from %s: run go test ./docs -run TestPromisesPage -update", promisesPage, promisesFile)
	} else if err := os.WriteFile(file, []byte(want.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

// linkTo returns a link from promisesPage to another page.
func linkTo(t *testing.T, page string) string {
	t.Helper()
	link, err := filepath.Rel(path.Dir(promisesPage), page)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("[%s](%s)", path.Base(page), filepath.ToSlash(link))
}

// TestProofs checks the names of tests in the last file of testdata/proofs.txtar, in a checkout that has the other files.
func TestProofs(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/proofs.txtar")
	if err != nil {
		t.Fatal(err)
	}
	root := memdir.Quick(t)
	last := len(archive.Files) - 1
	for _, f := range archive.Files[:last] {
		name := filepath.Join(root, filepath.FromSlash(f.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, f.Data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	c := newChecker(root)
	for line := range strings.Lines(string(archive.Files[last].Data)) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if got := c.problem(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
