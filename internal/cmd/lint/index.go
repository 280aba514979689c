package main

import (
	"fmt"
	"path"
	"strings"
)

// indexes are the pages that together link to every page of the documentation.
var indexes = []string{"README.md", "docs/README.md", decisions + "README.md"}

// decisions has an index of its own, with a sentence for each page.
const decisions = "docs/decisions/"

// caseIndexes are the pages that have a row for each case of a test. The first cell of a row
// is the name of a case.
var caseIndexes = []struct{ index, cases, suffix string }{
	{"generated_test/README.md", "generated_test/*/topology.yml", "/topology.yml"},
	{"generated_test/testdata/README.md", "generated_test/testdata/*/topology.yml", "/topology.yml"},
	{"gen/bind/testdata/README.md", "gen/bind/testdata/*.txtar", ""},
}

// index finds pages of the documentation that no index links to, and cases that have no row.
func index(r *repo) ([]finding, error) {
	found, err := pagesWithoutLink(r)
	if err != nil {
		return nil, err
	}
	for _, c := range caseIndexes {
		files, err := r.glob(c.cases)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			found = append(found, finding{c.index, 0, "there are no cases " + c.cases + ": correct the pattern in internal/cmd/lint/index.go"})
			continue
		}
		listed, err := r.rows(c.index)
		if err != nil {
			return nil, err
		}
		r.count(len(files))
		for _, file := range files {
			if name := path.Base(strings.TrimSuffix(file, c.suffix)); !listed[name] {
				found = append(found, finding{c.index, 0, fmt.Sprintf("add a row for the case %s", name)})
			}
		}
	}
	return found, nil
}

func pagesWithoutLink(r *repo) (found []finding, err error) {
	linked := make(map[string]bool)
	for _, name := range indexes {
		text, err := r.read(name)
		if err != nil {
			return nil, err
		}
		for _, m := range linkPattern.FindAllStringSubmatch(text, -1) {
			file, _ := targetOf(name, m[1])
			linked[file] = true
		}
	}
	list, err := r.pages()
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		documents := strings.HasPrefix(p.file, "docs/") || !strings.Contains(p.file, "/")
		if !documents || p.file == "README.md" {
			continue
		}
		r.count(1)
		if !linked[p.file] {
			found = append(found, finding{p.file, 0, "link to this page from one of " + strings.Join(indexes, ", ")})
		}
	}
	return found, nil
}

// rows returns the names in the first cells of the tables of a page.
func (r *repo) rows(file string) (map[string]bool, error) {
	text, err := r.read(file)
	listed := make(map[string]bool)
	for line := range strings.SplitSeq(text, "\n") {
		if cell, ok := strings.CutPrefix(line, "| "); ok {
			name, _, _ := strings.Cut(strings.TrimPrefix(cell, "["), " ")
			name, _, _ = strings.Cut(name, "]")
			listed[name] = true
		}
	}
	return listed, err
}
