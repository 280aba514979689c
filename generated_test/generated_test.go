// Package generated_test has the compiler's golden cases. Each folder is a case: a
// topology, the Go that it names, and the files that must be generated. README.md lists
// the cases.
//
// Every folder here with a topology.yml must compile. It is a package of this module, so
// it is vetted with the rest. If it has a main, that must print
// output.txt. Folders below testdata must fail: findings.txt has the findings, and the
// ports are there if they can be generated.
//
//	go test ./generated_test -update
package generated_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/header"
	"github.com/topogen/topogen/gen/write"
	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/spec/finding"
)

var update = flag.Bool("update", false, "write the results instead of comparing them")

// aCase is the case of one folder.
type aCase struct {
	dir   string // relative to this one
	fails bool
	input gen.Input
}

// cases finds all folders with a topology.
func cases(t testing.TB) []aCase {
	t.Helper()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	var list []aCase
	for _, pattern := range []string{"*/topology.yml", "scenarios/*/topology.yml", "testdata/*/topology.yml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Dir(file)
			list = append(list, aCase{
				dir: dir, fails: strings.HasPrefix(dir, "testdata"),
				input: gen.Input{Path: filepath.Join(here, file), Source: source},
			})
		}
	}
	if len(list) == 0 {
		t.Fatal("no cases")
	}
	return list
}

// TestGolden generates all cases and compares the results with the folders.
func TestGolden(t *testing.T) {
	list, results := inOrder(t)
	var findings []finding.Finding
	for _, r := range results {
		findings = append(findings, r.Findings...)
	}
	for i, c := range list {
		t.Run(filepath.Base(c.dir), func(t *testing.T) {
			var own []finding.Finding
			for _, f := range findings {
				if rel, err := filepath.Rel(filepath.Dir(c.input.Path), f.File); err == nil && filepath.IsLocal(rel) {
					f.File = filepath.ToSlash(rel)
					own = append(own, f)
				}
			}
			if finding.HasErrors(own) != c.fails {
				t.Errorf("has errors: %v, want %v", !c.fails, c.fails)
			}
			compareFindings(t, c, own)
			compareFiles(t, c, results[i].Files)
		})
	}
}

// inOrder generates all cases in the order of their names. All tests share the result.
func inOrder(t testing.TB) ([]aCase, []gen.Result) {
	t.Helper()
	list := cases(t)
	once.Do(func() {
		debug.SetGCPercent(400) // topogen collects late too
		ordered = generate(t, list)
	})
	return list, ordered
}

var (
	once    sync.Once
	ordered []gen.Result
)

func generate(t testing.TB, list []aCase) []gen.Result {
	t.Helper()
	rerun.WhenCodeChanges(t) // the go command reads the runtime
	in := make([]gen.Input, len(list))
	for i, c := range list {
		in[i] = c.input
	}
	return gen.GenerateAll(context.Background(), in, gen.Options{})
}

func compareFindings(t *testing.T, c aCase, findings []finding.Finding) {
	t.Helper()
	sources := make(map[string][]byte)
	for _, f := range findings {
		sources[f.File], _ = os.ReadFile(filepath.Join(c.dir, filepath.FromSlash(f.File)))
	}
	var text bytes.Buffer
	if err := finding.WriteText(&text, findings, sources, false); err != nil {
		t.Fatal(err)
	}
	compare(t, filepath.Join(c.dir, "findings.txt"), text.Bytes())
}

// compareFiles compares the generated files with the files in the folder, in both directions.
func compareFiles(t *testing.T, c aCase, files []write.File) {
	t.Helper()
	wanted := make(map[string]bool)
	for _, f := range files {
		if state := header.Inspect(f.Body); state != header.Ours && !f.Kept {
			t.Errorf("%s is %v", f.Name, state)
		}
		wanted[f.Name] = true
		compare(t, filepath.Join(c.dir, filepath.FromSlash(f.Name)), f.Body)
	}
	for _, pattern := range []string{"*.go", "*/*.go"} {
		present, err := filepath.Glob(filepath.Join(c.dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range present {
			if text, err := os.ReadFile(file); err != nil || header.Inspect(text) == header.Foreign {
				continue
			}
			rel, err := filepath.Rel(c.dir, file)
			if err != nil {
				t.Fatal(err)
			}
			if !wanted[filepath.ToSlash(rel)] {
				compare(t, file, nil)
			}
		}
	}
}

// compare compares a file with got. If got is empty, the file must not exist.
func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if bytes.Equal(want, got) {
		return
	}
	if !*update {
		t.Errorf("%s differs; got:\n%s", file, got)
		return
	}
	if len(got) == 0 {
		err = os.Remove(file)
	} else {
		err = os.WriteFile(file, got, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestOutput runs the cases with a main and compares their output.
func TestOutput(t *testing.T) {
	speed.Landing(t)
	rerun.WhenCodeChanges(t, "generated_test")
	files, err := filepath.Glob("*/output.txt")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("*/*/output.txt")
	if err != nil || len(files)+len(below) == 0 {
		t.Fatal("no programs: ", err)
	}
	files = append(files, below...)
	for _, file := range files {
		out, err := exec.Command("go", "run", "./"+filepath.Dir(file)).Output()
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue // so that -update keeps the file
		}
		compare(t, file, out)
	}
}

// TestDeterministic generates all cases a second time, in reverse order.
func TestDeterministic(t *testing.T) {
	speed.Landing(t)
	list, first := inOrder(t)
	slices.Reverse(list)
	second := generate(t, list)
	slices.Reverse(second)
	for i := range first {
		for j, f := range first[i].Files {
			if !bytes.Equal(f.Body, second[i].Files[j].Body) {
				t.Errorf("%s/%s differs the second time", first[i].Dir, f.Name)
			}
		}
	}
}
