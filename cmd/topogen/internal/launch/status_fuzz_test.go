package launch

import (
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/allocated"
)

// FuzzFigures reads any line of a program.
func FuzzFigures(f *testing.F) {
	f.Add("0 0 0 0 1 2 3")
	f.Add("0 0 0 0 18446744073709551615 x")
	f.Fuzz(func(t *testing.T, line string) {
		allocated.Within(t, 40*len(line), func() { // a field has two bytes and takes 16, and a list grows to three times its size
			if got, ok := parseFigures(line, time.Time{}); ok && len(got.received) > len(line) {
				t.Errorf("%q has %d edges", line, len(got.received))
			}
		})
	})
}
