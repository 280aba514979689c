// Package story runs tests that are written as stories: files of lines, told to the code
// one by one, with what comes of each line indented behind it.
package story

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what comes of the stories in testdata into them, except for those of Erlang/OTP")

// Tell reads each story that glob names, and compares it with what line answers. Lines
// that begin with a letter or a digit are told to the line function of a fresh teller.
// Those behind one that are indented are what comes of it. Other lines are for the
// reader.
func Tell(t *testing.T, glob string, teller func(t *testing.T) func(words []string) ([]string, error)) {
	t.Helper()
	names, err := filepath.Glob(glob)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no stories: %v", glob, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := retell(string(want), teller(t))
			if err != nil {
				t.Fatalf("%s:%v", name, err)
			}
			if *update && !strings.HasPrefix(glob, "testdata/otp") {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("%s went otherwise\n%s", name, difference(string(want), got))
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

// retell tells a story anew.
func retell(story string, line func([]string) ([]string, error)) (string, error) {
	var b strings.Builder
	n := 0
	for l := range strings.Lines(story) {
		n++
		if strings.HasPrefix(l, "  ") {
			continue // what came of it before
		}
		b.WriteString(l)
		if words := strings.Fields(l); len(words) > 0 && l[0] != '#' {
			answers, err := line(words)
			if err != nil {
				return "", fmt.Errorf("%d: %w", n, err)
			}
			for _, a := range answers {
				b.WriteString("  " + a + "\n")
			}
		}
	}
	return b.String(), nil
}
