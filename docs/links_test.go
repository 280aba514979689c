package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	linkPattern   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	anchorPattern = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	codePattern   = regexp.MustCompile("`[^`]*`")
)

// TestLinks checks every link within the repository, including links to headings.
func TestLinks(t *testing.T) {
	anchors := make(map[string]map[string]bool)
	list := pages(t)
	for _, p := range list {
		anchors[p.path] = anchorsOf(p)
	}
	for _, p := range list {
		for i, line := range prose(p) {
			for _, m := range linkPattern.FindAllStringSubmatch(codePattern.ReplaceAllString(line, ""), -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				file, anchor, _ := strings.Cut(m[1], "#")
				target := p.path
				if file != "" {
					target = path.Join(path.Dir(p.path), file)
				}
				if _, err := os.Stat(filepath.Join(repository, target)); err != nil {
					t.Errorf("%s:%d: the link leads to %s, which does not exist", p.path, i+1, target)
				} else if anchor != "" && !anchors[target][anchor] {
					t.Errorf("%s:%d: %s has no heading #%s", p.path, i+1, target, anchor)
				}
			}
		}
	}
}

// TestIndex checks that an index page links to every page.
func TestIndex(t *testing.T) {
	index := ""
	for _, name := range []string{"README.md", "docs/README.md", "docs/reference/README.md"} {
		text, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range linkPattern.FindAllStringSubmatch(string(text), -1) {
			file, _, _ := strings.Cut(m[1], "#")
			index += path.Join(path.Dir(name), file) + "\n"
		}
	}
	for _, p := range pages(t) {
		if p.path != "README.md" && !strings.HasPrefix(p.path, "docs/decisions/") && !strings.Contains(index, p.path+"\n") {
			t.Errorf("no index page links to %s", p.path)
		}
	}
}

// prose returns the lines of a page, with the lines of code blocks made empty.
func prose(p *page) []string {
	lines := make([]string, len(p.lines))
	copy(lines, p.lines)
	for _, b := range p.blocks {
		for i := range strings.Count(b.text, "\n") {
			lines[b.line-1+i] = ""
		}
	}
	return lines
}

// anchorsOf returns the anchors that GitHub gives the headings of a page, and the
// explicit anchors of the page.
func anchorsOf(p *page) map[string]bool {
	names := make(map[string]bool)
	for _, line := range prose(p) {
		for _, m := range anchorPattern.FindAllStringSubmatch(line, -1) {
			names[m[1]] = true
		}
		title := strings.TrimLeft(line, "#")
		if title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		names[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title))] = true
	}
	return names
}
