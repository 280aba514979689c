package topogen_test

import (
	"bufio"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hitsAllowed is how many hits a kind of text may have for each 1,000 of its
// words. Well-kept Go projects have 0.15 to 0.4.
const hitsAllowed = 0.5

// fewestWords is the length of the shortest string that is a sentence. Shorter ones
// are keys, paths and formats.
const fewestWords = 4

// A pattern is a form of sentence that most readers read twice.
type pattern struct {
	name    string
	form    *regexp.Regexp // matched against one sentence
	except  *regexp.Regexp // matches that are fine; nil: none
	instead string
}

// patterns are common in text that was translated word by word. CONTRIBUTING.md,
// section Plain English, has the rules behind them. Package regexp has no lookahead, so
// an exception is matched against the rest of the sentence, from the start of the
// match.
var patterns = []pattern{
	{"headless subject", regexp.MustCompile(`^(What|Who|Whoever|Whatever)\b.*`), regexp.MustCompile(`\?`),
		"name the subject: 'a client that ...', 'messages that ...'"},
	{"headless subject", regexp.MustCompile(`(, |; |: |\b(and|but|of|for|to|by|from|with|than) )(who|what) (is|are|was|were|has|have|had|comes?|came|waits?|goes|does|did|can|cannot|may|wants?|asks?|sends?|speaks?|listens?|reads?|leads?|stands?|fails?|failed|forgets?)\b`), nil,
		"name the subject: 'a client that ...', 'messages that ...'"},
	{"nobody", regexp.MustCompile(`(?i)\b(no|some|every|any)body\b`), nil,
		"name who it is: 'no caller', 'every node'"},
	{"one that", regexp.MustCompile(`(?i)\b(one|those|that) (that|which|who|of which)\b`), nil,
		"repeat the noun"},
	{"is no", regexp.MustCompile(`\b[A-Za-z]* ?\b(is|are|was|were) no ([a-z]+ )?[a-z]+\b`),
		regexp.MustCompile(`(?i)^(t?here (is|are|was|were)|[A-Za-z]* ?(is|are|was|were) no ([a-z]+ )?(longer|more|less|such|better|worse|different|need|way|reason|doubt|guarantee)\b)`),
		"'is not a', 'there is no'"},
	{"another than", regexp.MustCompile(`\b(an)?other than (these|those|the|that|before|this)\b`), nil,
		"'differs from', 'does not match'"},
	{"that there is", regexp.MustCompile(`\bthat there (is|are)\b`), nil,
		"say it directly"},
	{"old word", regexp.MustCompile(`(?i)\b(anew|likewise|thereby|whereof|hitherto|thereof|besides|else's|twain|lest|henceforth|whither|therein|perchance)\b`), nil,
		"'again', 'the same', 'also'"},
	{"stands", regexp.MustCompile(`\b(stands?|stood) (in|at|there|beside|under|where|before|behind|as|to|by|on)\b`), nil,
		"'is', 'is set', 'remains'"},
	{"so is it", regexp.MustCompile(`\bso (is|are|does|do|has|have|can) (it|they|who|what|those|the one)\b`), nil,
		"begin a new sentence"},
	{"by which not", regexp.MustCompile(`\b(while|in|by|from|to) which (it|the|a|nothing|nobody)\b.*\bnot\b`), nil,
		"write two sentences"},
	{"elision", regexp.MustCompile(`[,;] (the others?|others|those|that of|the rest|likewise) (not|do|does|did|are|is|have|has)\b`), regexp.MustCompile(`^[,;] (the others?|others|those|that of|the rest|likewise) (do|does|did|are|is|have|has) not\b`),
		"finish the sentence"},
	{"is to be", regexp.MustCompile(`\b(is|are) to be [a-z]+(ed|en|t)\b`), nil,
		"'must be', 'will be'"},
	{"meanwhile", regexp.MustCompile(`(?i)\b(meanwhile|of its own accord|by themselves|for good|once for all)\b`), nil,
		"say when, say how"},
}

// A passage is a piece of text in one place: a paragraph, a comment, a string.
type passage struct {
	place string
	text  string
}

// TestProse counts sentence forms that most readers read twice, and lists them. It
// fails if a kind of text has more than hitsAllowed.
func TestProse(t *testing.T) {
	texts := make(map[string][]passage)
	for _, file := range textFiles(t) {
		kind, found := passagesOf(t, file)
		for k, p := range found {
			texts[cmp.Or(kind, k)] = append(texts[cmp.Or(kind, k)], p...)
		}
	}
	for kind, passages := range texts {
		words, hits := 0, []string(nil)
		for _, p := range passages {
			words += len(strings.Fields(p.text))
			for _, h := range hitsOf(p.text) {
				hits = append(hits, p.place+": "+h)
			}
		}
		rate := 1000 * float64(len(hits)) / float64(words)
		slices.Sort(hits)
		t.Logf("%s: %d words, %.2f hits per 1,000\n%s", kind, words, rate, strings.Join(hits, "\n"))
		if rate > hitsAllowed {
			t.Errorf("%s must have at most %.1f hits per 1,000 words, got %.2f", kind, hitsAllowed, rate)
		}
	}
}

// TestPatternsOfProse goes through testdata/prose.txt: a sentence after the name
// of a pattern has that hit, a sentence after "fine" has none.
func TestPatternsOfProse(t *testing.T) {
	file, err := os.Open("testdata/prose.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seen := make(map[string]bool)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		want, sentence, ok := strings.Cut(lines.Text(), ": ")
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

// hitsOf returns the patterns that the sentences of text match.
func hitsOf(text string) []string {
	var hits []string
	for _, sentence := range sentences(text) {
		for _, p := range patterns {
			for _, at := range p.form.FindAllStringIndex(sentence, -1) {
				if p.except == nil || !p.except.MatchString(sentence[at[0]:]) {
					hits = append(hits, fmt.Sprintf("%s: %q (%s)", p.name, sentence[at[0]:min(len(sentence), at[1]+40)], p.instead))
				}
			}
		}
	}
	return hits
}

var sentenceEnd = regexp.MustCompile(`[.!?:;] |\|`)

// sentences splits text at the end of a sentence, at a colon or semicolon, and at the
// border of a table cell. Each part keeps the mark at its end.
func sentences(text string) []string {
	var all []string
	text = strings.Join(strings.Fields(text), " ")
	for {
		end := sentenceEnd.FindStringIndex(text)
		if end == nil {
			return append(all, strings.TrimSpace(text))
		}
		all = append(all, strings.TrimSpace(text[:end[1]]))
		text = text[end[1]:]
	}
}

// textFiles are the Markdown and Go files that people write.
func textFiles(t *testing.T) []string {
	var files []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "testdata" || name == "node_modules" || name != "." && name != ".github" && strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(name); !d.IsDir() && (ext == ".md" || ext == ".go") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// passagesOf returns the text of a file by its kind. If kind is not empty, it replaces
// the kind of all passages.
func passagesOf(t *testing.T, path string) (kind string, found map[string][]passage) {
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(path) == ".md" {
		return "", map[string][]passage{"documentation": markdown(path, string(content))}
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(file) {
		return "", nil // the generator's strings are counted
	}
	place := func(p token.Pos) string { return fmt.Sprintf("%s:%d", path, files.Position(p).Line) }
	found = make(map[string][]passage)
	for _, group := range file.Comments {
		for paragraph := range strings.SplitSeq(group.Text(), "\n\n") {
			found["comments"] = append(found["comments"], passage{place(group.Pos()), paragraph})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			regular := strings.Contains(text, `\b`) // a regular expression, as in this file
			if err == nil && len(strings.Fields(text)) >= fewestWords && !regular {
				found["strings"] = append(found["strings"], passage{place(lit.Pos()), text})
			}
		}
		return true
	})
	if strings.HasSuffix(path, "_test.go") {
		kind = "tests"
	}
	return kind, found
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	linkEnd  = regexp.MustCompile(`\]\([^)]*\)`)
	newBlock = regexp.MustCompile(`^\s*([-*|>]|\d+\.)`)
)

// markdown returns the paragraphs, rows and items of a page, without code and headings.
func markdown(path, content string) []passage {
	var found []passage
	fenced, open := false, false
	for i, line := range strings.Split(content, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			fenced, open = !fenced, false
			continue
		}
		if fenced || trimmed == "" || strings.HasPrefix(trimmed, "#") { // a heading may begin with What
			open = false
			continue
		}
		text := strings.ReplaceAll(codeSpan.ReplaceAllString(linkEnd.ReplaceAllString(line, "]"), "X"), "**", "")
		if open && !newBlock.MatchString(line) {
			found[len(found)-1].text += " " + text
			continue
		}
		found = append(found, passage{fmt.Sprintf("%s:%d", path, i+1), strings.TrimLeft(text, "-*> \t")})
		open = true
	}
	return found
}

// TestOnePageAboutRast checks that only one page, and no comment, refers to the document
// that the runtime was modelled on. Other text gives the reason itself.
func TestOnePageAboutRast(t *testing.T) {
	const name, page = "rast.md", "docs/reference/rast.md"
	for _, file := range textFiles(t) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(content), "]("+name+")", "]") // the index links the page
		if path := filepath.ToSlash(file); path != page && path != "docs/reference/README.md" && filepath.Ext(file) == ".md" && strings.Contains(text, name) {
			t.Errorf("%s refers to %s; give the reason itself", path, name)
		}
		if filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for i, line := range strings.Split(string(content), "\n") {
			if _, comment, ok := strings.Cut(line, "//"); ok && strings.Contains(comment, name) {
				t.Errorf("%s:%d: the comment refers to %s; give the reason itself", file, i+1, name)
			}
		}
	}
}
