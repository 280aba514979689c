package plan

import "testing"

// TestVisible checks that an internal package is visible only below its parent.
func TestVisible(t *testing.T) {
	for _, c := range []struct {
		path, own string
		want      bool
	}{
		{"a.b/c", "d.e/f", true},
		{"a.b/c/internal", "a.b/c", true},
		{"a.b/c/internal/d", "a.b/c/e", true},
		{"a.b/c/internal/d", "a.b/cc", false},
		{"a.b/internal/c/internal/d", "a.b/e", false},
		{"internal/abi", "a.b/c", false}, // Go's own
		{"a.b/internals", "c.d/e", true},
	} {
		if got := Visible(c.path, c.own); got != c.want {
			t.Errorf("%s from %s: %t", c.path, c.own, got)
		}
	}
}
