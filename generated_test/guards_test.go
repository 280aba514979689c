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
)

// near is how many lines above an error the command to run stands at most.
const near = 25

// TestGuards changes what the files of the case sample were generated for. Each
// change is a compile error in one of them, close below the command that helps.
func TestGuards(t *testing.T) {
	if os.Getenv("CI") == "" {
		t.Skip("takes long: set CI")
	}
	const user, runtime = "sample/sample.go", "../runtime/pool/generated.go"
	for _, c := range []struct{ name, file, old, new string }{
		{"a handler is gone", user, "func (a *Audit) ReceiveBad(m Bad)", "func (a *Audit) TakeBad(m Bad)"},
		{"a handler has another form", user, "ReceiveStat(m Stat)", "ReceiveStat(m *Stat)"},
		{"a handler gives an error now", user, "ReceiveGood(m Good, out *AuditSender) {", "ReceiveGood(m Good, out *AuditSender) (err error) {\n\tdefer func() { err = nil }()"},
		{"a type is gone", user, "type Audit struct", "type Auditor struct"},
		{"a key is gone", user, "type Query struct{ ID int }", "type Query struct{ Id int }"},
		{"a key has another type", user, "type Query struct{ ID int }", "type Query struct{ ID string }"},
		{"the runtime is another", runtime, "const Generated1 = 1", "const Generated2 = 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := buildChanged(t, c.file, c.old, c.new)
			found := regexp.MustCompile(`sample/(topology\w*_gen\.go):(\d+):`).FindAllStringSubmatch(out, -1)
			if len(found) == 0 {
				t.Fatalf("no error in generated code:\n%s", out)
			}
			for _, f := range found {
				text, err := os.ReadFile(filepath.Join("sample", f[1]))
				if err != nil {
					t.Fatal(err)
				}
				line, err := strconv.Atoi(f[2])
				if err != nil {
					t.Fatal(err)
				}
				lines := strings.Split(string(text), "\n")
				if strings.Contains(strings.Join(lines[max(0, line-near):line], "\n"), "go tool topogen build") {
					return
				}
			}
			t.Errorf("no error stands below the command:\n%s", out)
		})
	}
}

// buildChanged builds the case sample with a text replaced and returns what the
// compiler says.
func buildChanged(t *testing.T, file, old, new string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), old, new, 1)
	if changed == string(text) {
		t.Fatalf("%s does not hold %q", file, old)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay := filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: filepath.Join(dir, "changed.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{overlay: list, filepath.Join(dir, "changed.go"): []byte(changed)} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("go", "build", "-gcflags=-e", "-overlay", overlay, "./sample").CombinedOutput()
	if err == nil {
		t.Fatal("it compiles")
	}
	return string(out)
}
