package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The generated pages: `go test ./docs -run TestIndex -update` writes them.
const (
	indexPage = "docs/reference/index.md"
	llmsPage  = "docs/llms.txt"
)

// kind is a kind of names that the index lists.
type kind struct {
	title   string
	pattern *regexp.Regexp // the first group is the name
	sources []string       // patterns of files whose text the pattern is applied to
	except  *regexp.Regexp // names that are for tests only, or nil
}

var kinds = []kind{
	{"Keys of topology.yml", regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|"), []string{"docs/reference/topology.md"}, nil},
	{"Options of programs", regexp.MustCompile(`(?m)^func ([A-Z]\w*)\([^)]*\) (?:piper\.)?Option\b`), []string{"runtime/pool/*.go"}, nil},
	{"Variables", regexp.MustCompile(`"((?:TOPOGEN|RESONATE)_[A-Z_]+)\b`), []string{"runtime/*/*.go", "runtime/*/*/*.go", "runtime/*/*/*/*.go", "cmd/*/internal/*/*.go"}, regexp.MustCompile(`_TEST_|_PROCESS$`)},
	{"Findings", regexp.MustCompile(`(?m)= "(TG\d+)"`), []string{"spec/finding/codes.go"}, nil},
	{"Metrics", regexp.MustCompile(`"((?:topogen|resonate)_[a-z_]+)"`), []string{"runtime/durable/server/metrics.go"}, nil},
}

// TestIndex compares the index of all names, and the list of pages for machines, with the pages. A name
// that no page explains fails.
func TestIndex(t *testing.T) {
	explanations := explanationsIn(pages(t))
	var out strings.Builder
	out.WriteString("# Index\n\nThis page says which page explains a key, an option, a variable, a finding or a metric.\n")
	for _, k := range kinds {
		names := k.names(t)
		fmt.Fprintf(&out, "\n## %s\n\n| name | page |\n|---|---|\n", k.title)
		for _, name := range names {
			places := explanations.of(name)
			if len(places) == 0 {
				t.Errorf("no page explains %s (%s): add a row to a table, or a sentence", name, k.title)
			}
			fmt.Fprintf(&out, "| `%s` | %s |\n", name, strings.Join(places, ", "))
		}
		if len(names) == 0 {
			t.Errorf("%s: there are none: correct the pattern", k.title)
		}
	}
	compare(t, indexPage, out.String())
}

// names returns all names of a kind, sorted.
func (k kind) names(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{}
	for _, pattern := range k.sources {
		files, err := filepath.Glob(filepath.Join(repository, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range k.pattern.FindAllStringSubmatch(string(text), -1) {
				if k.except == nil || !k.except.MatchString(m[1]) {
					names[m[1]] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// itemPattern matches an item of a list that explains a finding: its anchor and its code.
var itemPattern = regexp.MustCompile(`^- <a id="(\w+)"></a>(\w+): `)

// namePattern matches a word that may be a name.
var namePattern = regexp.MustCompile(`\w+`)

// explanations are the places that explain names.
type explanations struct {
	rows map[string][]string       // links to the sections of the reference that have a row for a name
	uses map[string]map[string]int // how often each page has a word
}

func explanationsIn(list []*page) explanations {
	e := explanations{map[string][]string{}, map[string]map[string]int{}}
	for _, p := range list {
		if p.path == indexPage || strings.HasPrefix(p.path, "docs/decisions/") || !strings.HasPrefix(p.path, "docs/") {
			continue
		}
		section, words := "", map[string]int{}
		for i, line := range p.lines {
			if title, ok := strings.CutPrefix(line, "## "); ok {
				section = strings.TrimSpace(title)
			}
			for _, word := range namePattern.FindAllString(line, -1) {
				words[word]++
			}
			if item := itemPattern.FindStringSubmatch(line); item != nil {
				e.rows[item[2]] = append(e.rows[item[2]], indexLink(p.path, item[1]))
			}
			cell, rest, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
			if rest == "" || !strings.HasPrefix(p.path, "docs/reference/") || p.path == promisesPage /* repeats what others explain */ {
				continue
			}
			if i+1 < len(p.lines) && strings.HasPrefix(p.lines[i+1], "|---") {
				continue // the head of a table
			}
			second, _, _ := strings.Cut(rest, " | ")
			for _, name := range slices.Concat(strings.Split(cell, ", "), variables(second)) {
				name = strings.Trim(name, "`")
				if link := indexLink(p.path, section); !slices.Contains(e.rows[name], link) {
					e.rows[name] = append(e.rows[name], link)
				}
			}
		}
		e.uses[p.path] = words
	}
	return e
}

// variables returns the environment variables in the second cell of a row: an option has its own there.
func variables(cell string) []string {
	return slices.DeleteFunc(strings.Split(cell, ", "), func(name string) bool { return !strings.HasPrefix(name, "`TOPOGEN_") })
}

// of returns links to the rows of the reference for a name, or else to the page that uses it most.
func (e explanations) of(name string) []string {
	if links := e.rows[name]; len(links) > 0 {
		return links
	}
	most, count := "", 0
	for _, file := range slices.Sorted(maps.Keys(e.uses)) {
		if n := e.uses[file][name]; n > count {
			most, count = file, n
		}
	}
	if most == "" {
		return nil
	}
	return []string{indexLink(most, "")}
}

// indexLink returns a link from the index to a section of a page.
func indexLink(file, section string) string {
	target, err := filepath.Rel(filepath.FromSlash(path.Dir(indexPage)), filepath.FromSlash(file))
	if err != nil {
		panic(err) // both are relative to the repository
	}
	name := strings.TrimSuffix(path.Base(file), ".md")
	if section == "" {
		return fmt.Sprintf("[%s](%s)", name, filepath.ToSlash(target))
	}
	anchor := strings.ReplaceAll(regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(section), ""), " ", "-")
	return fmt.Sprintf("[%s, %s](%s#%s)", name, section, filepath.ToSlash(target), anchor)
}

// TestLLMs compares docs/llms.txt, a list of all pages for language models (llmstxt.org), with the pages.
func TestLLMs(t *testing.T) {
	var out strings.Builder
	out.WriteString("# topogen\n\n> topogen compiles topology files, which name processors and the edges between them, to statically typed Go programs that pass messages.\n\n## Docs\n\n")
	for _, p := range pages(t) {
		file, ok := strings.CutPrefix(p.path, "docs/")
		if !ok || strings.HasPrefix(file, "decisions/") || file == "README.md" {
			continue
		}
		title, about := head(strings.Join(p.lines, "\n"))
		if title == "" || about == "" {
			t.Errorf("%s: begin the page with a title, and a sentence that says who reads it for which question", p.path)
		}
		fmt.Fprintf(&out, "- [%s](%s): %s\n", title, file, about)
	}
	compare(t, llmsPage, out.String())
}

// head returns the title of a page, and its first sentence without links.
func head(source string) (title, sentence string) {
	_, text, _ := strings.Cut("\n"+source, "\n# ")
	title, text, _ = strings.Cut(text, "\n")
	for block := range strings.SplitSeq(text, "\n\n") {
		if block = strings.TrimSpace(block); block != "" && block[0] >= 'A' && block[0] <= 'Z' || strings.HasPrefix(block, "`") && !strings.HasPrefix(block, "```") {
			sentence = strings.Join(strings.Fields(block), " ")
			break
		}
	}
	sentence = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(sentence, "$1")
	if end := regexp.MustCompile(`\.( |$)`).FindStringIndex(sentence); end != nil {
		sentence = sentence[:end[0]] + "."
	}
	return title, sentence
}

// compare compares a generated page with its file, or writes the file with -update.
func compare(t *testing.T, file, got string) {
	t.Helper()
	name := filepath.Join(repository, filepath.FromSlash(file))
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs: go test ./docs -run 'TestIndex|TestLLMs' -update writes it (-file +pages):\n%s", file, diff)
	}
}
