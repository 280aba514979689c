package bind

import (
	"strings"
	"testing"
)

// TestFirstLine checks that the command to run stays in the message.
func TestFirstLine(t *testing.T) {
	for text, want := range map[string]string{
		"go: updates to go.mod needed; to update it:\n\tgo mod tidy\n":     "go: updates to go.mod needed; to update it: go mod tidy",
		"no required module provides package x; to add it:\n\tgo get x\nz": "no required module provides package x; to add it: go get x",
		"one\ntwo":                "one",
		"nothing behind:":         "nothing behind",
		"":                        "",
		strings.Repeat("ä", 1000): strings.Repeat("ä", firstLineBytesMax/2) + "…",
	} {
		if got := firstLine(text); got != want {
			t.Errorf("%.40q becomes %q", text, got)
		}
	}
}
