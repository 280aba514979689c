// Package golden compares what tests make with files.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update says that files are written instead of compared: go test -update.
var Update = flag.Bool("update", false, "write what the tests see as what they expect")

// Compare compares got with a file, or writes it.
func Compare(t *testing.T, name string, got []byte) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(name, got, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
