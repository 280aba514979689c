// Package reference compares the reference of the commands, and a golden file of their help
// texts, with the commands.
package reference

import (
	"os"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/golden"
)

// page is the path of the reference, relative to the package of the commands.
const page = "../../../../docs/reference/commands.md"

// Check checks that the reference has one row for each command of a program, and that
// testdata/help.txt has what --help prints for each command: go test -update writes it. The
// function run returns the output for arguments.
func Check(t *testing.T, program string, run func(args ...string) string) {
	t.Helper()
	file, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	listed := rows(string(file), program)
	var help strings.Builder
	walk(nil, run, func(names []string, text string, leaf bool) {
		name := strings.Join(append([]string{program}, names...), " ")
		help.WriteString("$ " + name + " --help\n" + text + "\n")
		if leaf && !listed[name] {
			t.Errorf("the reference lacks a row for %s", name)
		}
		delete(listed, name)
	})
	for name := range listed {
		t.Errorf("the reference has a row for %s, which is no command", name)
	}
	golden.Compare(t, "testdata/help.txt", []byte(help.String()))
}

// walk calls visit for each command and its commands, with its help text.
func walk(names []string, run func(args ...string) string, visit func(names []string, text string, leaf bool)) {
	text := run(append(names[:len(names):len(names)], "--help")...)
	list := commands(text)
	visit(names, text, len(list) == 0)
	for _, name := range list {
		walk(append(names[:len(names):len(names)], name), run, visit)
	}
}

// rows returns the commands of a program that the rows of the page name. The second cell of a
// row for a group of commands has their names.
func rows(page, program string) map[string]bool {
	names := make(map[string]bool)
	for line := range strings.Lines(page) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` | ")
		if !ok || !strings.HasPrefix(line, "| `"+program+" ") {
			continue
		}
		group := strings.Split(strings.TrimSuffix(rest, " |\n"), ", ")
		if !strings.HasPrefix(rest, "`") {
			names[name] = true
			continue
		}
		for _, command := range group {
			names[name+" "+strings.Trim(command, "`")] = true
		}
	}
	return names
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
