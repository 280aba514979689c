package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPatterns goes through testdata/prose.txt: a sentence after the name of a pattern
// has that hit, a sentence after "fine" has none.
func TestPatterns(t *testing.T) {
	text, err := os.ReadFile("testdata/prose.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		want, sentence, ok := strings.Cut(line, ": ")
		if !ok || strings.HasPrefix(want, "#") {
			continue
		}
		seen[want] = true
		hits := hitsOf(sentence)
		if want == "fine" {
			if len(hits) > 0 {
				t.Errorf("%q: want no hit, got %v", sentence, hits)
			}
		} else if !slices.ContainsFunc(hits, func(h string) bool { return strings.HasPrefix(h, want+": ") }) {
			t.Errorf("%q: want the hit %q, got %v", sentence, want, hits)
		}
	}
	for _, p := range patterns {
		if !seen[p.name] {
			t.Errorf("testdata/prose.txt has no sentence for %q", p.name)
		}
	}
}
