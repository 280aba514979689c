package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/rerun"
)

// TestCommands checks that the reference has a section for every command, and no
// other section. TestPages checks the help texts in it.
func TestCommands(t *testing.T) {
	rerun.WhenCodeChanges(t)
	page, err := os.ReadFile(filepath.Join(repository, "docs/reference/commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"topogen", "topoctl"} {
		want := commandsOf(t, program)
		for _, name := range want {
			call := program + " " + name
			if !strings.Contains(string(page), "\n## "+call+"\n") || !strings.Contains(string(page), "\n$ "+call+" --help\n") {
				t.Errorf("the reference lacks %s", call)
			}
		}
		if sections := strings.Count(string(page), "\n## "+program+" "); sections != len(want) {
			t.Errorf("the reference has %d sections for commands of %s, want %d", sections, program, len(want))
		}
	}
}

// commandsOf returns the names of the commands that the help of a program lists.
func commandsOf(t *testing.T, program string) []string {
	t.Helper()
	help, err := exec.Command(filepath.Join(bin, program), "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(help), "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var names []string
	for line := range strings.Lines(list) {
		if name := strings.Fields(line)[0]; name != "help" {
			names = append(names, name)
		}
	}
	return names
}
