package finding

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSort(t *testing.T) {
	at := func(file string, line, column int, code, message string) Finding {
		return Finding{Code: code, File: file, Range: Range{Line: line, Column: column}, Message: message}
	}
	want := []Finding{
		at("a", 1, 1, "TG101", "x"), at("a", 1, 2, "TG101", "x"), at("a", 1, 2, "TG102", "x"), at("a", 1, 2, "TG102", "y"), at("a", 2, 1, "TG101", "x"), at("b", 1, 1, "TG101", "x"),
	}
	mixed := slices.Concat(want, want)
	slices.Reverse(mixed)
	if diff := cmp.Diff(want, Sort(mixed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
