package generated_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/spec/finding"
)

// near is the maximum distance in lines between an error and the command above it.
const near = 25

// TestGuards changes the Go code or the runtime that generated files depend on. Each change
// must give a compile error in a generated file, close below the command that helps.
func TestGuards(t *testing.T) {
	speed.Landing(t)
	const user, runtime = "sample/sample.go", "../runtime/piper/generated.go"
	for _, c := range []struct{ name, file, old, new string }{
		{"a handler is missing", user, "func (a *Audit) ReceiveBad(m Bad)", "func (a *Audit) TakeBad(m Bad)"},
		{"the parameter of a handler has changed", user, "ReceiveStat(m Stat)", "ReceiveStat(m *Stat)"},
		{"a handler has a new error result", user, "ReceiveGood(m Good, out *AuditSender) {", "ReceiveGood(m Good, out *AuditSender) (err error) {\n\tdefer func() { err = nil }()"},
		{"a type is missing", user, "type Audit struct", "type Auditor struct"},
		{"a key is missing", user, "type Query struct{ ID int }", "type Query struct{ Id int }"},
		{"a key has another type", user, "type Query struct{ ID int }", "type Query struct{ ID string }"},
		{"the parameters of a lifecycle method have changed", "cycle/cycle.go", "Finish(out *LeftSender) { out.SendBall(Ball{-1, 1}) }", "Finish() {}"},
		{"a lifecycle method is missing", "cycle/cycle.go", "Finish(out *LeftSender) {", "Finnish(out *LeftSender) {"},
		{"Init has lost its error result", "failures/failures.go", `Init(ctx context.Context) error { return Hooks.call("camera init") }`, `Init(ctx context.Context) { Hooks.call("camera init") }`},
		{"the runtime has another version", runtime, "const Generated10 = 10", "const Generated11 = 11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(text), c.old, c.new, 1)
			if changed == string(text) {
				t.Fatalf("%s does not hold %q", c.file, c.old)
			}
			dir := filepath.Dir(c.file)
			if c.file == runtime {
				dir = "sample"
			}
			wantCommand(t, dir, buildWith(t, dir, map[string]string{c.file: changed}), nil)
		})
	}
}

// TestHalfACommit combines one file of a build with the other file of the previous build.
// This happens if a process is killed between the two renames, or if only the ports can be
// written. The files must be compatible, or give a compile error close below the command
// that helps.
func TestHalfACommit(t *testing.T) {
	speed.Landing(t)
	const ports, wiring = "topology_ports_gen.go", "topology_gen.go"
	for _, c := range []struct {
		name, old, new string
		compiles       bool
	}{
		{"processors in another order", "  feed: {}\n  parser: {instances: 2}\n", "  parser: {instances: 2}\n  feed: {}\n", false},
		{"another number of instances", "instances: 2", "instances: 3", false},
		{"another edge", "  - parser -> audit: Good\n", "  - parser -> audit: Good\n  - feed -> audit: Good\n", false},
		{"another policy", "capacity: 4, full: drop-oldest", "capacity: 4, full: drop-newest", false},
		{"edges in another order", "  - parser -> audit: Good\n  - parser -> audit: Bad\n", "  - parser -> audit: Bad\n  - parser -> audit: Good\n", false},
		{"a setting that the ports do not depend on", "edges:", "pool: {batch: 7}\nedges:", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := generateSample(t, c.old, c.new)
			for _, name := range []string{ports, wiring} {
				half := map[string]string{name: files[name]}
				out := buildWith(t, "sample", map[string]string{"sample/" + name: files[name]})
				if c.compiles && out != "" {
					t.Errorf("a new %s does not compile beside the old file:\n%s", name, out)
				} else if !c.compiles {
					wantCommand(t, "sample", out, half)
				}
			}
		})
	}
}

// generateSample generates the case sample after replacing a text in its topology.
func generateSample(t *testing.T, old, new string) map[string]string {
	t.Helper()
	path, err := filepath.Abs("sample/topology.yml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), old, new, 1)
	if changed == string(text) {
		t.Fatalf("the topology does not hold %q", old)
	}
	result, findings := gen.Generate(t.Context(), gen.Input{Path: path, Source: []byte(changed)}, gen.Options{})
	if finding.HasErrors(findings) {
		t.Fatal(findings)
	}
	files := make(map[string]string)
	for _, f := range result.Files {
		files[f.Name] = string(f.Body)
	}
	return files
}

// wantCommand fails unless the first error in the generated code of a case is below the
// command to run. files has the contents of files that differ from the disk.
func wantCommand(t *testing.T, dir, out string, files map[string]string) {
	t.Helper()
	if out == "" {
		t.Fatal("it compiles")
	}
	found := regexp.MustCompile(`/(topology\w*_gen\.go):(\d+):`).FindAllStringSubmatch(out, -1)
	if len(found) == 0 {
		t.Fatalf("no error in generated code:\n%s", out)
	}
	first := make(map[string]bool)
	for _, f := range found {
		if first[f[1]] {
			continue // the compiler sorts errors by position
		}
		first[f[1]] = true
		text, ok := files[f[1]]
		if !ok {
			onDisk, err := os.ReadFile(filepath.Join(dir, f[1]))
			if err != nil {
				t.Fatal(err)
			}
			text = string(onDisk)
		}
		line, err := strconv.Atoi(f[2])
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(text, "\n")
		if strings.Contains(strings.Join(lines[max(0, line-near):min(line, len(lines))], "\n"), "go tool topogen build") {
			return
		}
	}
	t.Errorf("no error is below the command:\n%s", out)
}

// buildWith builds a case with replaced files and returns the compiler's output; "" if it
// compiles.
func buildWith(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	replace := make(map[string]string)
	for file, content := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		replace[path] = filepath.Join(folder, filepath.Base(file))
		if err := os.WriteFile(replace[path], []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o644); err != nil {
		t.Fatal(err)
	}
	rerun.WhenCodeChanges(t, "generated_test")
	out, err := exec.Command("go", "build", "-gcflags=-e", "-overlay", overlay, "./"+dir).CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}
