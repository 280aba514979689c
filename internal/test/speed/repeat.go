package speed

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Repeat returns the command that runs a random test with one seed at the speed of this run,
// for the message of a failure.
func Repeat(t testing.TB, seed uint64) string {
	t.Helper()
	var at string
	if text := os.Getenv(Variable); of(t) != quick {
		at = Variable + "=" + text + " "
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	return fmt.Sprintf("repeat with: %s%s=%d go test -run '^%s$' %s", at, OneSeed, seed, name, folder())
}

// folder returns the package of the test, as the go command in the root of the module has it.
func folder() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	for under := ""; ; {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return "./" + under
		}
		if dir == filepath.Dir(dir) {
			return "." // not in a module
		}
		under = path.Join(filepath.Base(dir), under)
		dir = filepath.Dir(dir)
	}
}
