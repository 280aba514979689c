package main

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"
)

var (
	linkPattern   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	anchorPattern = regexp.MustCompile(`<a id="([^"]+)"></a>`)
)

// links finds links within the repository that lead nowhere, and headings that links name but
// pages lack.
func links(r *repo) (found []finding, err error) {
	list, err := r.pages()
	if err != nil {
		return nil, err
	}
	anchors := make(map[string]map[string]bool)
	for _, p := range list {
		anchors[p.file] = anchorsOf(p.lines)
	}
	for _, p := range list {
		if p.open > 0 {
			found = append(found, finding{p.file, p.open, "the block of code is not closed: add ```"})
		}
		for i, line := range p.lines {
			for _, m := range linkPattern.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				r.count(1)
				target, anchor := targetOf(p.file, m[1])
				if !r.exists(target) {
					found = append(found, finding{p.file, i + 1, fmt.Sprintf("the link leads to %s, which does not exist", target)})
				} else if anchor != "" && !anchors[target][anchor] {
					found = append(found, finding{p.file, i + 1, fmt.Sprintf("%s must have the heading #%s, which this link names", target, anchor)})
				}
			}
		}
	}
	return found, nil
}

// targetOf splits a link of a page into the file, relative to the root, and the heading.
func targetOf(page, link string) (file, anchor string) {
	file, anchor, _ = strings.Cut(link, "#")
	if file == "" {
		return page, anchor
	}
	return path.Join(path.Dir(page), file), anchor
}

// A page is a Markdown file.
type page struct {
	file  string
	lines []string // without code
	open  int      // the line of a block of code that is not closed
}

// pages returns the Markdown files of the repository.
func (r *repo) pages() (list []page, err error) {
	paths, err := r.paths()
	if err != nil {
		return nil, err
	}
	for _, file := range paths {
		if path.Ext(file) != ".md" {
			continue
		}
		text, err := r.read(file)
		if err != nil {
			return nil, err
		}
		lines, open := textLines(text)
		list = append(list, page{file, lines, open})
	}
	return list, nil
}

// anchorsOf returns the anchors that GitHub gives the headings of a page, and the
// explicit anchors of the page.
func anchorsOf(lines []string) map[string]bool {
	names := make(map[string]bool)
	for _, line := range lines {
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
