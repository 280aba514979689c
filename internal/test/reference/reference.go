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

// Check checks that the reference has an item for each command of a program, with its description
// in the help text, and that testdata/help.txt has what --help prints for each command: go test
// -update writes it. The function run returns the output for arguments.
func Check(t *testing.T, program string, run func(args ...string) string) {
	t.Helper()
	file, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	items := make(map[string]bool)
	for line := range strings.Lines(string(file)) {
		if strings.HasPrefix(line, "- `"+program+" ") {
			items[strings.TrimSpace(line)] = true
		}
	}
	var help strings.Builder
	walk([]string{program}, "", run, func(name, short, text string, leaf bool) {
		help.WriteString("$ " + name + " --help\n" + text + "\n")
		item := "- `" + name + "`: " + short
		if leaf && !items[item] {
			t.Errorf("the reference lacks the line %s", item)
		}
		delete(items, item)
	})
	for item := range items {
		t.Errorf("the reference has the line %s, which no help text has", item)
	}
	golden.Compare(t, "testdata/help.txt", []byte(help.String()))
}

// walk calls visit for a command and its commands, with their descriptions and help texts.
func walk(names []string, short string, run func(args ...string) string, visit func(name, short, text string, leaf bool)) {
	text := run(append(names[1:len(names):len(names)], "--help")...)
	list := commands(text)
	visit(strings.Join(names, " "), short, text, len(list) == 0)
	for _, c := range list {
		walk(append(names[:len(names):len(names)], c.name), c.short, run, visit)
	}
}

// command is a command in a help text, with its description.
type command struct{ name, short string }

// commands returns the commands that a help text lists.
func commands(help string) (found []command) {
	_, list, _ := strings.Cut(help, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		if name, short, _ := strings.Cut(strings.TrimSpace(line), " "); name != "help" {
			found = append(found, command{name, strings.TrimSpace(short)})
		}
	}
	return found
}
