package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommands checks that the reference has every command, and no other. That
// it shows their help as it is now is a matter of TestPages.
func TestCommands(t *testing.T) {
	help, err := exec.Command(filepath.Join(bin, "topogen"), "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(help), "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var want []string
	for line := range strings.Lines(list) {
		if name := strings.Fields(line)[0]; name != "help" {
			want = append(want, name)
		}
	}
	page, err := os.ReadFile(filepath.Join(repository, "docs/reference/commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := 0
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "## topogen ") {
			sections++
		}
	}
	for _, name := range want {
		if !strings.Contains(string(page), "\n## topogen "+name+"\n") || !strings.Contains(string(page), "\n$ topogen "+name+" --help\n") {
			t.Errorf("the reference lacks topogen %s", name)
		}
	}
	if sections != len(want) {
		t.Errorf("the reference has %d commands, topogen %d", sections, len(want))
	}
}
