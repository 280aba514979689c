package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// hitsAllowed is how many hits a kind of text may have for each 1,000 of its
// words. Well-kept Go projects have 0.15 to 0.4.
const hitsAllowed = 0.5

// fewestWords is the length of the shortest string that is a sentence. Shorter ones
// are keys, paths and formats.
const fewestWords = 4

// Kinds of text. Comments and strings of tests are one kind.
const (
	documentation = "documentation"
	comments      = "comments"
	stringsOfCode = "strings"
	tests         = "tests"
)

// A passage is a piece of text in one place: a paragraph, a comment, a string.
type passage struct {
	kind string
	file string
	line int
	text string
}

// prose counts sentence forms that most readers read twice. A kind of text has findings
// if it has more than hitsAllowed.
func prose(r *repo) (found []finding, err error) {
	paths, err := r.paths()
	if err != nil {
		return nil, err
	}
	words := make(map[string]int)
	hits := make(map[string][]finding)
	for _, path := range paths {
		passages, err := r.passages(path)
		if err != nil {
			return nil, err
		}
		for _, p := range passages {
			r.count(1)
			words[p.kind] += len(strings.Fields(p.text))
			for _, h := range hitsOf(p.text) {
				hits[p.kind] = append(hits[p.kind], finding{p.file, p.line, h})
			}
		}
	}
	for _, kind := range []string{documentation, comments, stringsOfCode, tests} {
		rate := 1000 * float64(len(hits[kind])) / float64(max(1, words[kind]))
		r.note("%s: %d words, %.2f hits per 1,000, at most %.1f", kind, words[kind], rate, hitsAllowed)
		if rate > hitsAllowed {
			found = append(found, hits[kind]...)
			continue
		}
		for _, h := range hits[kind] {
			r.note("\t%v", h)
		}
	}
	return found, nil
}

// passages returns the text of a file.
func (r *repo) passages(file string) ([]passage, error) {
	if path.Ext(file) == ".md" {
		text, err := r.read(file)
		return markdown(file, text), err
	}
	syntax, err := r.parse(file)
	if err != nil || ast.IsGenerated(syntax) { // the strings of the generator are counted
		return nil, err
	}
	var found []passage
	add := func(kind string, at token.Pos, text string) {
		if strings.HasSuffix(file, "_test.go") {
			kind = tests
		}
		_, line := r.place(at)
		found = append(found, passage{kind, file, line, text})
	}
	for _, group := range syntax.Comments {
		for paragraph := range strings.SplitSeq(group.Text(), "\n\n") {
			add(comments, group.Pos(), paragraph)
		}
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			regular := strings.Contains(text, `\b`) // a regular expression, as in this package
			if err == nil && len(strings.Fields(text)) >= fewestWords && !regular {
				add(stringsOfCode, lit.Pos(), text)
			}
		}
		return true
	})
	return found, nil
}

// hitsOf returns the patterns that the sentences of text match.
func hitsOf(text string) (hits []string) {
	candidates := candidatesOf(text)
	if len(candidates) == 0 {
		return nil
	}
	for _, sentence := range sentences(text) {
		for _, p := range candidates {
			for _, at := range p.form.FindAllStringIndex(sentence, -1) {
				if p.except == nil || !p.except.MatchString(sentence[at[0]:]) {
					hits = append(hits, fmt.Sprintf("%s: %q: %s", p.name, sentence[at[0]:min(len(sentence), at[1]+40)], p.instead))
				}
			}
		}
	}
	return hits
}

// candidatesOf returns the patterns that have one of their words in text. Most texts have
// none, and a search for words takes a tenth of the time of a regular expression.
func candidatesOf(text string) (candidates []*pattern) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for i := range patterns {
		if slices.ContainsFunc(patterns[i].words, func(word string) bool { return strings.Contains(text, word) }) {
			candidates = append(candidates, &patterns[i])
		}
	}
	return candidates
}

// sentences splits text at the end of a sentence, at a colon or semicolon, and at the
// border of a table cell. Each part keeps the mark at its end.
func sentences(text string) (all []string) {
	text = strings.Join(strings.Fields(text), " ")
	start := 0
	for i := range len(text) {
		if text[i] == '|' || text[i] == ' ' && i > 0 && strings.IndexByte(".!?:;", text[i-1]) >= 0 {
			all = append(all, strings.TrimSpace(text[start:i+1]))
			start = i + 1
		}
	}
	return append(all, strings.TrimSpace(text[start:]))
}
