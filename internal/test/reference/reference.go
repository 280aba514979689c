// Package reference compares the reference of the commands, and a golden file of their help
// texts, with the commands.
package reference

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/golden"
)

// page is the path of the reference, relative to the package of the commands.
const page = "../../../../docs/reference/commands.md"

// Check checks that the reference lists each command of a program, or its group, and that
// testdata/help.txt has what --help prints for each command: go test -update writes it. The
// function run returns the output for arguments.
func Check(t *testing.T, program string, run func(args ...string) string) {
	t.Helper()
	file, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	listed, exists := items(string(file), program), make(map[string]bool)
	var help strings.Builder
	walk(nil, run, func(names []string, text string, leaf bool) {
		name := strings.Join(append([]string{program}, names...), " ")
		help.WriteString("$ " + name + " --help\n" + text + "\n")
		exists[name] = true
		if group := strings.Join(append([]string{program}, names[:max(0, len(names)-1)]...), " "); leaf && !listed[name] && !listed[group] {
			t.Errorf("the reference does not list %s", name)
		}
	})
	for name := range listed {
		if !exists[name] {
			t.Errorf("the reference lists %s, which is not a command", name)
		}
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

// namePattern matches the name of a command in an item.
var namePattern = regexp.MustCompile("`([^`]+)`")

// items returns the commands of a program that items of the page name: "- `topoctl errors`: ...", or
// "- `topoctl log` `dump`, `verify`: ..." for several.
func items(page, program string) map[string]bool {
	names := make(map[string]bool)
	for line := range strings.Lines(page) {
		item, _, ok := strings.Cut(line, ": ")
		if !ok || !strings.HasPrefix(item, "- `"+program) {
			continue
		}
		found := namePattern.FindAllStringSubmatch(item, -1)
		if len(found) == 1 {
			names[found[0][1]] = true
		}
		for _, name := range found[1:] {
			names[found[0][1]+" "+name[1]] = true
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
