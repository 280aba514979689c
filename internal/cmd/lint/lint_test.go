package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the findings into testdata")

// TestChecks runs each check on the repository in testdata/NAME.txtar, which has mistakes that
// the check must find. Its last file, want, has the findings.
func TestChecks(t *testing.T) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join("testdata", c.name+".txtar")
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			last := len(archive.Files) - 1
			want := archive.Files[last]
			var got bytes.Buffer
			if _, err := run(&got, unpack(t, archive.Files[:last]), "^"+c.name+"$", false); err != nil {
				t.Fatal(err)
			}
			got = *bytes.NewBufferString(strings.ReplaceAll(got.String(), " ("+c.name+")\n", "\n"))
			if want.Name != "want" || got.Len() == 0 {
				t.Fatalf("%s must end with findings in a file want, got findings:\n%s", name, &got)
			}
			if bytes.Equal(got.Bytes(), want.Data) {
				return
			}
			if !*update {
				t.Errorf("%s: got:\n%s\nwant:\n%s", name, &got, want.Data)
				return
			}
			archive.Files[last].Data = got.Bytes()
			if err := os.WriteFile(name, txtar.Format(archive), 0o666); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// unpack writes files into a new folder.
func unpack(t *testing.T, files []txtar.File) *repo {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		path := filepath.Join(root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return newRepo(root)
}

// TestNothing runs each check on a repository in which only the files exist that the check opens
// by name, and these are empty. index then finds that nothing links to its own pages.
func TestNothing(t *testing.T) {
	opened := map[string][]string{"index": indexes, "long": {longFile}}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := []txtar.File{{Name: "go.mod", Data: []byte("module " + module + "\n")}}
			for _, name := range opened[c.name] {
				files = append(files, txtar.File{Name: name})
			}
			var out bytes.Buffer
			found, err := run(&out, unpack(t, files), "^"+c.name+"$", false)
			if c.name == "index" && err == nil && found > 0 {
				return
			}
			if err == nil || err.Error() != c.name+": nothing was checked" {
				t.Errorf("got the error %v, and the findings:\n%s", err, &out)
			}
		})
	}
}

func TestPlural(t *testing.T) {
	for n, want := range []string{"0 findings", "1 finding", "2 findings"} {
		if got := plural(n, "finding"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestUnknownCheck runs a check that does not exist.
func TestUnknownCheck(t *testing.T) {
	if _, err := run(new(bytes.Buffer), newRepo(t.TempDir()), "spelling", false); err == nil || !strings.Contains(err.Error(), `no check matches "spelling"`) {
		t.Errorf("got %v", err)
	}
}
