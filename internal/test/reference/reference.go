// Package reference compares the reference of the commands with the commands.
package reference

import (
	"os"
	"strings"
	"testing"
)

// page is the path of the reference, relative to the package of the commands.
const page = "../../../../docs/reference/commands.md"

// Check checks that the reference has one section for each command of a program, and that
// each help text in it is what the program prints. The function run returns the output for
// arguments.
func Check(t *testing.T, program string, run func(args ...string) string) {
	t.Helper()
	file, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(file)
	names := commands(run("--help"))
	if sections := strings.Count(text, "\n## "+program+" "); sections != len(names) || sections == 0 {
		t.Errorf("the reference has %d sections for commands of %s, want %d", sections, program, len(names))
	}
	shown := make(map[string]bool)
	for _, block := range strings.Split(text, "```console\n$ "+program+" ")[1:] {
		call, rest, _ := strings.Cut(block, "\n")
		if !strings.HasSuffix(call, "--help") {
			continue
		}
		shown[call] = true
		want, _, _ := strings.Cut(rest, "```")
		if got := run(strings.Fields(call)...); got != want {
			t.Errorf("%s %s prints\n%s\nwant\n%s", program, call, got, want)
		}
	}
	for _, name := range names {
		if !strings.Contains(text, "\n## "+program+" "+name+"\n") || !shown[name+" --help"] {
			t.Errorf("the reference lacks %s %s", program, name)
		}
	}
}

// commands returns the names of the commands that a help text lists.
func commands(help string) (names []string) {
	_, list, _ := strings.Cut(help, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		if name := strings.Fields(line)[0]; name != "help" {
			names = append(names, name)
		}
	}
	return names
}
