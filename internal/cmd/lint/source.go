package main

import (
	"path"
	"strings"
)

// document is the document that the runtime was modelled on. docs/data/rast.yml compares the runtime with it.
const document = "rast.md"

// source finds references to the document in pages and comments, which give the reason themselves.
func source(r *repo) (found []finding, err error) {
	paths, err := r.paths()
	if err != nil {
		return nil, err
	}
	for _, file := range paths {
		isPage := path.Ext(file) == ".md"
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := r.read(file)
		if err != nil {
			return nil, err
		}
		r.count(1)
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
