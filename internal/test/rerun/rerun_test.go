package rerun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestWhenCodeChanges runs a test of another module that builds a command. Its result
// must stay cached until the command changes.
func TestWhenCodeChanges(t *testing.T) {
	speed.Landing(t) // six runs of go test
	own, err := os.ReadFile("rerun.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name, text string) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range code {
		put(folder+"/sub/a.txt", "a")
	}
	put("go.mod", "module example.com/rerun\n\ngo 1.26\n")
	put("rerun/rerun.go", string(own))
	put("cmd/main.go", "package main\n\nfunc main() {}\n")
	put("more/more.txt", "more")
	put("tested/a_test.go", `package tested

import (
	"testing"

	"example.com/rerun/rerun"
)

func Test(t *testing.T) { rerun.WhenCodeChanges(t, "more") }
`)
	kept := func() bool {
		t.Helper()
		cmd := exec.Command("go", "test", "./tested")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Contains(string(out), "(cached)")
	}
	kept()
	if !kept() {
		t.Error("the test runs again although nothing has changed")
	}
	for _, name := range []string{"cmd/main.go", "runtime/sub/a.txt", "spec/sub/new.txt", "more/more.txt"} {
		put(name, "package main\n\nfunc main() { println() }\n")
		if kept() {
			t.Errorf("the result is kept although %s has changed", name)
		}
	}
}
