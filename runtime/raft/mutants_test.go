package raft_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/internal/race"
)

// mutant is a deliberate mistake: it replaces some lines of the package, or of a package in it.
// testdata/mutants.txt lists all mutants.
type mutant struct {
	name, text string
	tests      string // regexp of the tests that must catch it; "": the simulation
	survives   string // why no test can catch it; "": a test can
	file       string
	old, new   string
}

// mutants reads the list. A mutant begins with "== name: effect". Optional lines "tests REGEXP"
// and "survives REASON" follow, then the file, and then the removed and added lines, which begin
// with - and +.
func mutants(t *testing.T) (list []mutant) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "mutants.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if head, ok := strings.CutPrefix(line, "== "); ok {
			name, text, _ := strings.Cut(head, ": ")
			list = append(list, mutant{name: name, text: text})
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := &list[len(list)-1]
		switch key, rest, _ := strings.Cut(line, " "); {
		case line[0] == '-':
			m.old += line[1:] + "\n"
		case line[0] == '+':
			m.new += line[1:] + "\n"
		case key == "tests":
			m.tests = rest
		case key == "survives":
			m.survives = rest
		default:
			m.file = line
		}
	}
	return list
}

// apply returns the content of the file with the mistake.
func (m *mutant) apply() (string, error) {
	b, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(b), m.old); n != 1 || m.old == "" {
		return "", fmt.Errorf("%s: %s must contain the removed lines once, got %d times", m.name, m.file, n)
	}
	return strings.Replace(string(b), m.old, m.new, 1), nil
}

// TestMutantsApply: the list of mutants matches the code.
func TestMutantsApply(t *testing.T) {
	list := mutants(t)
	seen := map[string]bool{}
	for _, m := range list {
		if _, err := m.apply(); err != nil {
			t.Error(err)
		}
		if seen[m.name] || m.text == "" {
			t.Errorf("the mutant %q must be listed once, with its effect", m.name)
		}
		seen[m.name] = true
	}
	if len(list) < 30 {
		t.Errorf("%d mutants, want at least 30", len(list))
	}
}

// mutantSeeds is the number of seeds of the simulation within which a mutant must fail.
const mutantSeeds = "1000"

// mutantsInCI is the number of random mutants in CI. Each takes some seconds to compile.
const mutantsInCI = 2

// TestMutants compiles the tests with a mutant and runs them: they must fail. In CI it runs a few
// random mutants. TOPOGEN_MUTANT selects one by name, or "all".
func TestMutants(t *testing.T) {
	only := os.Getenv("TOPOGEN_MUTANT")
	if os.Getenv("CI") == "" && only == "" || race.Enabled {
		t.Skip("slow: set CI to run it")
	}
	list := slices.DeleteFunc(mutants(t), func(m mutant) bool {
		return m.survives != "" || only != "" && only != "all" && only != m.name
	})
	if only == "" {
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		list = list[:mutantsInCI]
	}
	for _, m := range list {
		t.Run(m.name, func(t *testing.T) {
			if out := m.run(t); out != "" {
				t.Errorf("a test must fail with this mutant: %s\n%s", m.text, out)
			}
		})
	}
}

// run runs the tests with the mutant. It returns their output if they pass, and "" if they fail.
func (m *mutant) run(t *testing.T) (passed string) {
	t.Helper()
	text, err := m.apply()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, "changed.go")
	path, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{changed: []byte(text), filepath.Join(dir, "overlay.json"): overlay} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "raft.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tests := "^TestRandomFaults$"
	if m.tests != "" {
		tests = m.tests
	}
	run := exec.Command(binary, "-test.run", tests, "-test.timeout", "2m")
	run.Env = append(os.Environ(), "TOPOGEN_SEEDS="+mutantSeeds, "TOPOGEN_SEED=", "CI=")
	out, err := run.CombinedOutput()
	if err == nil {
		return string(out)
	}
	t.Logf("%.300s", out)
	return ""
}
