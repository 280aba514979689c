// Package golden compares the results of tests with files.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update is the flag -update of go test. With it, the files are written instead of compared.
var Update = flag.Bool("update", false, "write the results of the tests to the golden files")

// Compare compares got with a file, or writes the file with -update.
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
