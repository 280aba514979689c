// Package script runs tests that are written as text files: each line is a command,
// and the lines indented behind it are the expected output of the command.
package script

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the output of the scripts in testdata into them, except for the scripts of Erlang/OTP")

// Run runs each script that glob matches, and compares the output with the script.
// For each script it calls newInterpreter and passes the words of each command to the
// returned function, which returns the lines of output. A line that begins with
// # is a comment, and lines that are indented by two spaces are output. All other lines
// are commands.
func Run(t *testing.T, glob string, newInterpreter func(t *testing.T) func(words []string) ([]string, error)) {
	t.Helper()
	names, err := filepath.Glob(glob)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no scripts: %v", glob, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := run(string(want), newInterpreter(t))
			if err != nil {
				t.Fatalf("%s:%v", name, err)
			}
			if *update && !strings.HasPrefix(glob, "testdata/otp") {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("%s: the output differs\n%s", name, difference(string(want), got))
			}
		})
	}
}

// difference shows the first line that differs.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	a, b = append(a, "(the end)"), append(b, "(the end)")
	return fmt.Sprintf("line %d\nwant %s\ngot  %s", n+1, a[n], b[n])
}

// run returns the script with the output that its commands have now.
func run(script string, command func([]string) ([]string, error)) (string, error) {
	var b strings.Builder
	n := 0
	for l := range strings.Lines(script) {
		n++
		if strings.HasPrefix(l, "  ") {
			continue // output of an earlier run
		}
		b.WriteString(l)
		if words := strings.Fields(l); len(words) > 0 && l[0] != '#' {
			output, err := command(words)
			if err != nil {
				return "", fmt.Errorf("%d: %w", n, err)
			}
			for _, line := range output {
				b.WriteString("  " + line + "\n")
			}
		}
	}
	return b.String(), nil
}
