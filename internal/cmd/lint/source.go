package main

import (
	"path"
	"strings"
)

// The document that the runtime was modelled on, and the pages that may refer to it.
const (
	document     = "rast.md"
	documentPage = "docs/reference/rast.md"
	documentList = "docs/reference/README.md"
)

// source finds references to the document that the runtime was modelled on. Only one page
// compares the runtime with it. Other pages and comments give the reason themselves.
func source(r *repo) (found []finding, err error) {
	paths, err := r.paths()
	if err != nil {
		return nil, err
	}
	for _, file := range paths {
		isPage := path.Ext(file) == ".md"
		if file == documentPage || file == documentList || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := r.read(file)
		if err != nil {
			return nil, err
		}
		r.count(1)
		text = strings.ReplaceAll(text, "]("+document+")", "]") // pages link the page
		for i, line := range strings.Split(text, "\n") {
			if !isPage {
				_, line, _ = strings.Cut(line, "//")
			}
			if strings.Contains(line, document) {
				found = append(found, finding{file, i + 1, "refers to " + document + ": give the reason itself"})
			}
		}
	}
	return found, nil
}
