package pairtests_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/write"
	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/spec/finding"
)

// budget is the time for which a long run generates further covering arrays.
const budget = 10 * time.Minute

// TestGenerated generates the topologies of a covering array, compiles them into one test program
// with the race detector, and runs each topology with all failures. A long run continues with other arrays.
func TestGenerated(t *testing.T) {
	speed.Landing(t)
	rerun.WhenCodeChanges(t, "generated_test/pairs")
	checkArrays(t, oneProcess, 0)
}

// checkArrays checks the covering array of a design, and in a long run others. A landing run has the first
// most topologies of the array, or all if most is 0.
func checkArrays(t *testing.T, d design, most int) {
	t.Helper()
	start := time.Now()
	for seed := fixed(t); ; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rows := d.coveringArray(t, seed)
			if n := speed.Pick(t, most, most, 0); n > 0 {
				rows = rows[:min(n, len(rows))]
			}
			checkArray(t, seed, rows)
		})
		if !speed.Pick(t, false, false, true) || os.Getenv(speed.OneSeed) != "" || t.Failed() || time.Since(start) > budget {
			return
		}
	}
}

// fixed returns the first seed. A landing run always has the same seed, unless TOPOGEN_SEED sets it.
func fixed(t *testing.T) uint64 {
	if os.Getenv(speed.OneSeed) == "" && !speed.Pick(t, false, false, true) {
		return 1
	}
	first, _ := speed.Seeds(t, 1, 1, 1)
	return first
}

// checkArray runs the topologies of the covering array of a seed.
func checkArray(t *testing.T, seed uint64, rows []row) {
	dir := folder(t)
	inputs, results := generate(t, dir, rows, seed)
	writeAll(t, inputs, results)
	program := filepath.Join(t.TempDir(), "pairs.test")
	build := exec.Command("go", "test", "-c", "-race", "-vet=off", "-o", program, "-ldflags=-s -w",
		"-gcflags=github.com/topogen/topogen/generated_test/pairtests/...=-N -l", "./"+dir) // without optimization the build takes a third of the time
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, r := range rows {
		t.Run(name(i), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(program, "-test.run=^TestAll$/^"+name(i)+"$", "-test.timeout=10m")
			cmd.Dir = t.TempDir() // for the file of the section errors
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s\n%s\n%s", err, speed.Repeat(t, seed), r.yaml(name(i)), out)
			}
		})
	}
}

// folder makes a folder inside this module, which has the runtime, until the test ends. The go
// command does not look into testdata. The folder has the first free name and not a random one, so
// that the go command finds the packages of an earlier run in its cache.
func folder(t *testing.T) string {
	t.Helper()
	for i := 0; ; i++ {
		dir := filepath.Join("testdata", fmt.Sprintf("random%d", i))
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue // of another run
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
}

// name returns the name of topology i and of its package.
func name(i int) string { return fmt.Sprintf("p%d", i) }

// generate writes the topologies and the code of some rows into a folder, and a test that runs all
// topologies. It returns the results of topogen for them.
func generate(t *testing.T, dir string, rows []row, seed uint64) ([]gen.Input, []gen.Result) {
	t.Helper()
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	var inputs []gen.Input
	var imports, cases strings.Builder
	for i, r := range rows {
		name := name(i)
		folder := filepath.Join(dir, name)
		inputs = append(inputs, gen.Input{Path: filepath.Join(folder, "topology.yml"), Source: []byte(r.yaml(name))})
		put(t, folder, write.File{Name: "topology.yml", Body: []byte(r.yaml(name))}, write.File{Name: "code.go", Body: []byte(r.code(name, i, seed))})
		fmt.Fprintf(&imports, "\t\"github.com/topogen/topogen/generated_test/pairtests/testdata/%s/%s\"\n", filepath.Base(dir), name)
		fmt.Fprintf(&cases, "\tt.Run(%q, func(t *testing.T) { pairs.All(t, %[1]s.Case) })\n", name)
	}
	put(t, dir, write.File{Name: "all_test.go", Body: fmt.Appendf(nil,
		"package all\n\nimport (\n\t\"testing\"\n\n\t\"github.com/topogen/topogen/generated_test/pairs\"\n%s)\n\nfunc TestAll(t *testing.T) {\n%s}\n", &imports, &cases)})
	return inputs, gen.GenerateAll(t.Context(), inputs, gen.Options{})
}

// writeAll writes the generated files.
func writeAll(t *testing.T, inputs []gen.Input, results []gen.Result) {
	t.Helper()
	for i, result := range results {
		if finding.HasErrors(result.Findings) {
			var text strings.Builder
			err := finding.WriteText(&text, result.Findings, nil, false)
			t.Fatalf("%s\n%s%v", inputs[i].Source, &text, err)
		}
		put(t, filepath.Dir(inputs[i].Path), result.Files...)
	}
}

func put(t *testing.T, dir string, files ...write.File) {
	t.Helper()
	for _, f := range files {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, f.Name), f.Body, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}
