package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// varying are the parts of output that differ between runs: the times that go test
// prints.
var varying = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?m)^((?:ok|FAIL|---|\?) .*[ \t(])(?:[0-9.]+s|\(cached\))`), "${1}TIME"},
	{regexp.MustCompile(`(?m)^(FAIL\t\S+\t)[0-9.]+s$`), "${1}TIME"},
}

// matches reports whether the output of a command matches the page. A line "..."
// matches any lines, and "..." within a line matches any text.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if strings.TrimSpace(want[0]) == "..." {
		for i := range len(got) + 1 {
			if matches(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && matchesLine(want[0], got[0]) && matches(want[1:], got[1:])
}

func matchesLine(want, got string) bool {
	want, got = withoutTimes(want), withoutTimes(got)
	parts := strings.Split(want, "...")
	if len(parts) == 1 {
		return want == got
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(got) < len(first)+len(last) || !strings.HasPrefix(got, first) || !strings.HasSuffix(got, last) {
		return false
	}
	got = got[len(first) : len(got)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, ok := strings.Cut(got, part)
		if !ok {
			return false
		}
		got = rest
	}
	return true
}

// withoutTimes replaces the parts of a line that vary.
func withoutTimes(line string) string {
	line = strings.TrimRight(line, " \t")
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.instead)
	}
	return line
}

var (
	numberPattern = regexp.MustCompile(`\d[\d.,]*`)
	wordPattern   = regexp.MustCompile(`\pL+`)
	spacePattern  = regexp.MustCompile(`\s+`)
)

// shapes replaces the numbers and words of each line by placeholders.
func shapes(lines []string) []string {
	list := make([]string, len(lines))
	for i, line := range lines {
		line = wordPattern.ReplaceAllString(numberPattern.ReplaceAllString(line, "0"), "w")
		list[i] = strings.TrimSpace(spacePattern.ReplaceAllString(line, " "))
	}
	return list
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		want, got string
		match     bool
	}{
		{"a\nb", "a\nb", true},
		{"a\nb", "a", false},
		{"a", "a\nb", false},
		{"...", "", true},
		{"a\n...\nc", "a\nb\nb\nc", true},
		{"a\n...\nc", "a\nb", false},
		{"...\nc", "a\nc\nc", true},
		{"made ... in ...", "made 3 in 4 ms", true},
		{"made ... in 5", "made 3 in 4", false},
		{"ab...ba", "aba", false},
		{"ok  \tx\t0.003s", "ok  \tx\t(cached)", true},
		{"ok  \tx\t0.003s", "ok  \ty\t0.003s", false},
		{"--- FAIL: TestX (0.00s)", "--- FAIL: TestX (1.23s)", true},
	} {
		if got := matches(strings.Split(c.want, "\n"), strings.Split(c.got, "\n")); got != c.match {
			t.Errorf("matches(%q, %q) = %v", c.want, c.got, got)
		}
	}
}
