package main

import (
	"regexp"
	"strings"
)

// namePattern matches the name of a test or of a deliberate bug, with its folder.
var namePattern = regexp.MustCompile("`([\\w/]+ (?:(?:Test|Fuzz|Benchmark|Example)[A-Z]\\w*|mutant [\\w-]+))`")

// named finds tests and deliberate bugs that pages of the documentation name. Users do not need them, and
// go test ./docs checks only the names in docs/data.
func named(r *repo) (found []finding, err error) {
	list, err := r.pages()
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if !strings.HasPrefix(p.file, "docs/") || strings.HasPrefix(p.file, decisions) {
			continue
		}
		r.count(1)
		for i, line := range p.lines {
			for _, m := range namePattern.FindAllStringSubmatch(line, -1) {
				found = append(found, finding{p.file, i + 1, "names " + m[1] + ": name it in a row of docs/data instead"})
			}
		}
	}
	return found, nil
}
