package main

import (
	"strings"
	"testing"
)

// TestOverflow checks a package with a constant that overflows an int of 32 bits.
func TestOverflow(t *testing.T) {
	for system, want := range map[string]string{
		"linux/386":   "linux/386: ", // followed by the position
		"linux/amd64": "",
	} {
		var out strings.Builder
		ok, err := check(&out, system, "testdata/overflow", ".")
		if text := out.String(); err != nil || ok != (want == "") || !strings.HasPrefix(text, want) || !ok && !strings.Contains(text, "overflow.go:6:17: ") {
			t.Errorf("%s: %v, %v, %q", system, ok, err, text)
		}
	}
}

func TestWhatCannotBeChecked(t *testing.T) {
	for system, pattern := range map[string]string{"linux": ".", "linux/386": "./missing/..."} {
		if ok, _ := check(t.Output(), system, "testdata/overflow", pattern); ok {
			t.Errorf("%s %s: there is no error", system, pattern)
		}
	}
}
